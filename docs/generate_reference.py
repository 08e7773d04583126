"""Makes docs/REFERENCE.md from the code: commands, settings, methods, measures, retrievers, languages.

    python docs/generate_reference.py            # writes the file (make docs)

A test fails when the file is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cdp.base import config
from cdp.base.registry import registry
from cdp.cli.options import commands
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

TARGET = Path(__file__).parent / "REFERENCE.md"

CONFIGS = {
    "Reading documents": ReadOptions,
    "Importing queries": ImportOptions,
    "Synthesis": config.SynthesisConfig,
    "Q-D metrics": config.MetricsConfig,
    "Round-trip rank": config.RoundTripConfig,
    "Filtering queries": config.FilterConfig,
    "Choosing a prompt": config.PromptTuningConfig,
    "Training": config.TrainingConfig,
    "Evaluation": config.EvaluationConfig,
    "Indexing documents for searching": config.IndexConfig,
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
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(build(), encoding="utf-8")
