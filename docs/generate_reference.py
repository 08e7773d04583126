"""Makes docs/REFERENCE.md from the code: commands, settings, methods, measures, retrievers, languages, the library.

    python docs/generate_reference.py            # writes the file (make docs)

A test fails when the file is stale.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cdp
from cdp.base import config
from cdp.base.registry import registry
from cdp.cli.declare import all_commands
from cdp.complexity import LANGUAGES
from cdp.corpus import ReadOptions
from cdp.query_sets import ImportOptions
from cdp.studies import StudyConfig

REGISTRIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "corpus format": ("Formats of documents", ()),
    "method": ("Synthesis methods", ()),
    "generator": ("Generators", ("model",)),
    "measure": ("Measures of query sets", ("better", "needs")),
    "export format": ("Exports of query sets", ()),
    "weighting": ("Weightings", ("needs",)),
    "preset": ("Retrievers", ("licence",)),
    "benchmark schema": ("How benchmarks are published", ()),
}
"""What can be extended (`cdp.base.registry.HOMES`): the title of its table, and further facts of an item."""

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET = REPOSITORY / "docs" / "REFERENCE.md"

CONFIGS = {
    "Reading documents": ReadOptions,
    "Importing queries": ImportOptions,
    "Synthesis": config.SynthesisConfig,
    "Q-D metrics": config.MetricsConfig,
    "Round-trip rank": config.RoundTripConfig,
    "Filtering queries": config.FilterConfig,
    "Mining hard negatives": config.MiningConfig,
    "Choosing a prompt": config.PromptTuningConfig,
    "Judging by a model": config.JudgeConfig,
    "Training": config.TrainingConfig,
    "Evaluation": config.EvaluationConfig,
    "Importing results": config.ResultImportConfig,
    "Indexing documents for searching": config.IndexConfig,
    "Downloading a benchmark": config.DownloadConfig,
    "Serving (`cdp serve`)": config.ServingConfig,
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
    for setting in kind.settings().values():
        limits = " ".join(
            f"{word} {limit:g}"
            for word, limit in (("from", setting.minimum), ("to", setting.maximum))
            if limit is not None
        )
        allowed = ", ".join(setting.choices) or f"{limits} {setting.unit if limits else ''}".strip()
        default = "required" if setting.required else "" if setting.default is None else setting.default
        rows.append((f"`{setting.name}`", setting.help, default, setting.reason, allowed))
    return table(["setting", "what it is", "default", "why this default", "allowed"], rows)


def definition(name: str, file: Path) -> ast.FunctionDef | ast.ClassDef:
    """What ``name`` is in a module, or in the one that it is imported from. Read, not imported: one loads torch."""
    imported: ast.ImportFrom | None = None
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            imported = node
    assert imported is not None
    assert imported.module is not None
    module = REPOSITORY.joinpath(*imported.module.split("."))
    return definition(name, package if (package := module / "__init__.py").exists() else module.with_suffix(".py"))


def library(name: str) -> list[str]:
    """One of the ten names: how it is called, and its docstring."""
    node = definition(name, Path(cdp.__file__))
    call = (
        next(x for x in node.body if getattr(x, "name", "") == "__init__") if isinstance(node, ast.ClassDef) else node
    )
    assert isinstance(call, ast.FunctionDef)
    call.args.args = [argument for argument in call.args.args if argument.arg != "self"]
    returns = f" -> {ast.unparse(node.returns)}" if isinstance(node, ast.FunctionDef) and node.returns else ""
    text = inspect.cleandoc(ast.get_docstring(node) or "").replace("``", "`")
    text = re.sub(r"^Args:\n", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^    (\w+): ", r"- `\1`: ", text, flags=re.MULTILINE)
    text = re.sub(r"^ {8}", "  ", text, flags=re.MULTILINE)
    signature = textwrap.fill(f"{name}({ast.unparse(call.args)}){returns}", 100, subsequent_indent="    ")
    return [f"### {name}", "", "```text", signature, "```", "", text, ""]


def build() -> str:
    """The whole page."""
    lines = ["# Reference", "", "Made from the code by `make docs`; do not edit.", "", "## Commands", ""]
    lines += [
        "Each is `cdp …` (in a clone `python -m cdp …`), with `--json` and `--help`. Exit code 0: done, 1: the job "
        "failed, 2: bad input, 130: interrupted. `-` is standard input or output wherever a file is named. A setting "
        "of the tables below is an option of its command, as `--batch-size 64`, or given by `--set batch_size=64`.",
        "",
    ]
    titles = {kind: title.partition(" (")[0] for title, kind in CONFIGS.items()}
    rows = []
    for name, command in all_commands().items():
        listed = {setting for kind in command.configs.values() if kind in titles for setting in kind.settings()}
        words = [
            f"`{argument.flag}`"
            for argument in command.arguments.values()
            if argument.word or (argument.name not in {*listed, "json"} and not argument.hidden)
        ]
        words += [f"settings: {titles[kind]}" for kind in command.configs.values() if kind in titles]
        rows.append((f"`{name}`", command.help, ", ".join(words)))
    lines += table(["command", "what it does", "arguments and options"], rows)
    for title, kind in CONFIGS.items():
        lines += [f"## Settings: {title}", "", *settings(kind)]
    for kind, (title, facts) in REGISTRIES.items():
        lines += [f"## {title}", ""]
        items = [item for item in registry(kind).values() if item.offered]
        rows = [
            (f"`{item.name}`", item.title, item.help, *(getattr(item, name) or "–" for name in facts)) for item in items
        ]
        lines += table(["name", "title", "what it is", *facts], rows)
    lines += ["## Languages of content words", ""]
    lines += table(
        ["code", "language", "words", "stopwords"],
        [(f"`{x.code}`", x.name, x.tokenizer, x.stopwords) for x in LANGUAGES.values()],
    )
    lines += ["## The library", "", "`from cdp import …`, with examples in [LIBRARY.md](LIBRARY.md).", ""]
    for name in cdp.__all__:
        lines += library(name)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(build(), encoding="utf-8")
