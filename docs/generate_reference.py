"""Makes docs/REFERENCE.md from the code: commands, settings, methods, measures, retrievers, languages.

    python docs/generate_reference.py            # writes the file (make docs)

A test fails when the file is stale.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cdp.base import config
from cdp.cli.options import commands
from cdp.complexity import LANGUAGES
from cdp.corpus import ReadOptions
from cdp.metrics import MEASURES
from cdp.query_sets import ImportOptions
from cdp.retrievers import PRESETS
from cdp.studies import StudyConfig
from cdp.synthesis.methods import METHODS

TARGET = Path(__file__).parent / "REFERENCE.md"

CONFIGS = {
    "Reading documents": ReadOptions,
    "Importing queries": ImportOptions,
    "Synthesis": config.SynthesisConfig,
    "Q-D metrics": config.MetricsConfig,
    "Choosing a prompt": config.PromptTuningConfig,
    "Training": config.TrainingConfig,
    "Evaluation": config.EvaluationConfig,
    "Downloading a benchmark": config.DownloadConfig,
    "Studies (a plan in YAML, or `--set`)": StudyConfig,
}


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A Markdown table."""

    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |"

    return [line(header), "|" + "---|" * len(header), *(line(row) for row in rows), ""]


def settings(kind: type[config.Config]) -> list[str]:
    """A row per field of a configuration."""
    rows = []
    for field in dataclasses.fields(kind):
        facts = field.metadata
        limits = " ".join(
            f"{word} {facts[key]:g}" for key, word in (("minimum", "from"), ("maximum", "to")) if facts[key] is not None
        )
        allowed = ", ".join(facts["choices"]) or f"{limits} {facts['unit'] if limits else ''}".strip()
        default = "" if field.default is None else field.default
        if field.default is dataclasses.MISSING:
            default = "required"
        rows.append((f"`{field.name}`", facts["help"], default, allowed))
    return table(["setting", "what it is", "default", "allowed"], rows)


def build() -> str:
    """The whole page."""
    lines = ["# Reference", "", "Made from the code by `make docs`; do not edit.", "", "## Commands", ""]
    lines += [
        "Each is `python -m cdp …`, with `--json` and `--help`. Exit code 0: done, 1: the job failed, 2: bad input.",
        "",
    ]
    rows = []
    for name, (_, text, options) in commands().items():
        words = ", ".join(f"`{option}`" for option, _ in options)
        rows.append((f"`{name}`", text, words))
    lines += table(["command", "what it does", "arguments and options"], rows)
    for title, kind in CONFIGS.items():
        lines += [f"## Settings: {title}", "", *settings(kind)]
    lines += ["## Synthesis methods", ""]
    lines += table(["name", "title", "what it does"], [(f"`{m.name}`", m.title, m.help) for m in METHODS.values()])
    lines += ["## Measures of query sets", ""]
    lines += table(
        ["name", "title", "better", "definition", "needs"],
        [(f"`{m.name}`", m.title, m.better or "–", m.help, m.needs or "–") for m in MEASURES.values()],
    )
    lines += ["## Retrievers", ""]
    lines += table(
        ["name", "title", "what it is", "licence"],
        [(f"`{p.name}`", p.title, p.help, p.licence) for p in PRESETS.values()],
    )
    lines += ["## Languages of content words", ""]
    lines += table(
        ["code", "language", "words", "stopwords"],
        [(f"`{x.code}`", x.name, x.tokenizer, x.stopwords) for x in LANGUAGES.values()],
    )
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(build(), encoding="utf-8")
