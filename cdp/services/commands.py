"""The command line that does what a page does, as text to copy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from cdp.base.settings import Config
from cdp.base.workspace import INSTALLED

PROGRAM = "cdp" if INSTALLED else "python -m cdp"
"""What stands before the words of a command: an installed package brings the command ``cdp``."""


def line(*words: object, **options: object) -> str:
    """A command line: words, then options; options that are None, False or empty are left out, True is a bare flag."""
    parts = [shlex.quote(str(word)) for word in words if word not in (None, "")]
    for name, value in options.items():
        if value is None or value is False or value == "":
            continue
        parts.append(f"--{name.replace('_', '-')}")
        if value is not True:
            parts.append(shlex.quote(str(value)))
    return " ".join([PROGRAM, *parts])


def given(values: Mapping[str, Any]) -> list[str]:
    """``--set field=value`` for each of these settings."""
    return [word for name, value in values.items() for word in ("--set", f"{name}={'' if value is None else value}")]


def settings(config: Config, without: tuple[str, ...] = ()) -> list[str]:
    """``--set field=value`` for every setting that differs from its default."""
    changed = {
        setting.name: value
        for setting in config.settings().values()
        if (value := getattr(config, setting.name)) != setting.default and not setting.required
    }
    return given({name: value for name, value in changed.items() if name not in without})


def placed(text: str, on: str) -> str:
    """A command that starts jobs, with where they are to run."""
    return f"{text} --on {shlex.quote(on)}" if on else text


def generate(config: Any) -> str:
    """``queries generate`` for a SynthesisConfig."""
    return line(
        "queries", "generate", "--corpus", config.corpus, "--method", config.method, "--per-doc", config.per_doc,
        "--generator", config.generator, *settings(config, ("corpus", "method", "per_doc", "generator")), "--wait",
    )  # fmt: skip


def train(
    config: Any,
    benchmarks: Sequence[tuple[str, str]] = (),
    when: str = "both",
    *,
    allow_incomplete: bool = False,
    allow_leakage: bool = False,
) -> str:
    """``train`` for a TrainingConfig, with its evaluations on each (benchmark, split)."""
    judged = [word for name, split in benchmarks for word in ("--evaluate", f"{name}:{split}")]
    if judged and when != "both":
        judged += ["--when", when]
    return line(
        "train", config.query_set, "--retriever", config.retriever, "--weighting", config.weighting,
        *settings(config, ("query_set", "retriever", "weighting")), *judged,
        *_allowed(allow_incomplete, allow_leakage), "--wait",
    )  # fmt: skip


def _allowed(incomplete: bool, leakage: bool) -> list[str]:
    return [*(["--allow-incomplete"] if incomplete else []), *(["--allow-leakage"] if leakage else [])]


def sweep(config: Any, rates: Sequence[str], *, allow_incomplete: bool = False, allow_leakage: bool = False) -> str:
    """``sweep run`` for a TrainingConfig and learning rates as text."""
    benchmark = f"{config.benchmark}:{config.split}" if config.split else config.benchmark
    named = ("query_set", "retriever", "weighting", "benchmark", "split", "learning_rate", "name")
    return line(
        "sweep", "run", config.query_set, "--retriever", config.retriever, "--weighting", config.weighting,
        "--learning-rates", ",".join(rates), "--benchmark", benchmark,
        *(("--name", config.name) if config.name else ()), *settings(config, named),
        *_allowed(allow_incomplete, allow_leakage), "--wait",
    )  # fmt: skip


def evaluate(config: Any) -> str:
    """``evaluate`` for an EvaluationConfig."""
    return line(
        "evaluate", config.retriever, "--benchmark", config.benchmark,
        *(("--split", config.split) if config.split else ()),
        *settings(config, ("retriever", "benchmark", "split")), "--wait",
    )  # fmt: skip


def metrics(config: Any) -> str:
    """``metrics`` for a MetricsConfig."""
    return line(
        "metrics", config.query_set, *(("--human", config.human) if config.human else ()),
        *settings(config, ("query_set", "human")), "--wait",
    )  # fmt: skip


def tune(config: Any) -> str:
    """``prompts tune`` for a PromptTuningConfig."""
    named = ("corpus", "methods", "target", "documents", "per_doc", "generator", "human")
    return line(
        "prompts", "tune", "--corpus", config.corpus, "--methods", config.methods, "--target", config.target,
        "--documents", config.documents, "--per-doc", config.per_doc, "--generator", config.generator,
        *(("--human", config.human) if config.human else ()), *settings(config, named), "--wait",
    )  # fmt: skip
