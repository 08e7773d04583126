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
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cdp
from cdp.base import config
from cdp.base.registry import Registered, registry
from cdp.base.settings import Setting
from cdp.cli.declare import all_commands
from cdp.complexity import LANGUAGES
from cdp.corpus import ReadOptions
from cdp.query_sets import ImportOptions
from cdp.studies.config import StudyConfig

REGISTRIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "corpus format": ("Formats of documents", ()),
    "method": ("Synthesis methods", ()),
    "generator": ("Generators", ("model",)),
    "measure": ("Measures of query sets", ("better", "needs")),
    "export format": ("Exports of query sets", ()),
    "weighting": ("Weightings", ("needs",)),
    "preset": ("Retrievers", ("licence",)),
    "benchmark schema": ("How benchmarks are published", ()),
    "job kind": ("Kinds of job", ("makes", "command")),
}
"""What can be extended (`cdp.base.registry.HOMES`): the title of its section, and further facts of an item."""

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET = REPOSITORY / "docs" / "REFERENCE.md"

CONFIGS: dict[str, type[config.Config]] = {
    "Reading documents": ReadOptions,
    "Importing queries": ImportOptions,
    "Synthesis": config.SynthesisConfig,
    "Q-D metrics": config.MetricsConfig,
    "Round-trip rank": config.RoundTripConfig,
    "Filtering queries": config.FilterConfig,
    "Mining hard negatives": config.MiningConfig,
    "Choosing a prompt": config.PromptTuningConfig,
    "Judging": config.JudgeConfig,
    "Training": config.TrainingConfig,
    "Evaluation": config.EvaluationConfig,
    "Importing results": config.ResultImportConfig,
    "Indexing documents for searching": config.IndexConfig,
    "Downloading a benchmark": config.DownloadConfig,
    "Serving (`cdp serve`)": config.ServingConfig,
    "Studies (a plan in YAML, or `--set`)": StudyConfig,
}


SHARED = "Settings of several commands"


def bullet(head: str, text: object) -> str:
    """A list item in one line."""
    return f"- {head}: {' '.join(str(text).split())}"


def described(setting: Setting) -> str:
    """A setting: name, default as it is typed, allowed values, help, and the reason for the default in italics."""
    low, high = ("" if limit is None else f"{limit:,.10g}" for limit in (setting.minimum, setting.maximum))
    limits = f"{low}–{high}" if low and high else f"≥{low}" if low else f"≤{high}" if high else ""
    allowed = ", ".join(filter(None, setting.choices)) or f"{limits} {setting.unit}".strip()
    value = "" if setting.required or setting.default is None else str(setting.default)
    if setting.kind is bool:
        value = {"True": "yes", "False": "no"}.get(value, value)
    name = f"`{setting.name}={value}`" if value else f"`{setting.name}`"
    facts = ", ".join(filter(None, ("required" if setting.required else "", allowed)))
    reason = f" *{setting.reason}*" if setting.reason else ""
    return bullet(f"{name} ({facts})" if facts else name, setting.help + reason)


def settings() -> list[str]:
    """A section per configuration. A setting that several have in the same words stands once, in a section before."""
    lines = {title: {x.name: described(x) for x in kind.settings().values()} for title, kind in CONFIGS.items()}
    count = Counter(pair for section in lines.values() for pair in section.items())
    # Of one name only the most frequent setting is shared, so that "as above" has one meaning.
    most = {name: line for (name, line), _ in reversed(count.most_common())}
    shared = {name: line for name, line in count if count[name, line] > 1 and most[name] == line}
    page = [f"## {SHARED}", "", *shared.values(), ""]
    for title, section in lines.items():
        named = [f"`{name}`" for name, line in section.items() if shared.get(name) == line]
        own = [line for name, line in section.items() if shared.get(name) != line]
        above = [f"- [As above]({anchor(SHARED)}): {', '.join(named)}."] if named else []
        page += [f"## Settings: {title}", "", *own, *above, ""]
    return page


def anchor(heading: str) -> str:
    """The link to a heading of this page."""
    return "#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def commands() -> list[str]:
    """An item per command: its words, its options, the sections with its settings, what it does."""
    titles = {kind: title for title, kind in CONFIGS.items()}
    lines = []
    for name, command in all_commands().items():
        listed = [titles[kind] for kind in command.configs.values() if kind in titles]
        # `--set` goes without saying where the settings are named.
        known = {setting for kind in command.configs.values() if kind in titles for setting in kind.settings()}
        known |= {"json", "set"} if listed else {"json"}
        words = [
            argument.name.upper() if argument.required else f"[{argument.name.upper()}]"
            for argument in command.arguments.values()
            if argument.word
        ]
        options = [
            f"`{argument.flag}`"
            for argument in command.arguments.values()
            if not (argument.word or argument.hidden or argument.name in known)
        ]
        sections = [f"[{title.partition(' (')[0]}]({anchor(f'Settings: {title}')})" for title in listed]
        takes = [*options, *(f"settings: {section}" for section in sections)]
        text = ". ".join([command.help, *([", ".join(takes)] if takes else []), ""])
        lines.append(bullet(f"`{' '.join([name, *words])}`", text))
    return lines


def extension(item: Registered, facts: Sequence[str]) -> str:
    """An item of a registry: its name, its title unless the help begins with it, the help, further facts."""
    title = (
        item.title.removeprefix(f"{item.name} (").removesuffix(")") if item.title.startswith(item.name) else item.title
    )
    plain = title.lower()
    told = plain == item.name or item.help.lower().startswith(plain)
    more = [f"{name.capitalize()}: {value}" for name in facts if (value := getattr(item, name))]
    text = " ".join(f"{part.rstrip('.')}." for part in [item.help, *more])
    return bullet(f"`{item.name}`{'' if told else f' ({title})'}", text)


def definition(name: str, file: Path) -> ast.FunctionDef | ast.ClassDef:
    """What ``name`` is in a module, or in the one that it is imported from. Read, not imported: one loads torch."""
    imported: ast.ImportFrom | None = None
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and any(name in (alias.asname, alias.name) for alias in node.names):
            imported = node
            name = next(alias.name for alias in node.names if name in (alias.asname, alias.name))
    assert imported is not None
    assert imported.module is not None
    module = REPOSITORY.joinpath(*imported.module.split("."))
    return definition(name, package if (package := module / "__init__.py").exists() else module.with_suffix(".py"))


def library(name: str) -> list[str]:
    """One of the eleven names: how it is called, and its docstring."""
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


def objects() -> list[str]:
    """The methods of the objects that a workspace gives, with the first paragraph of each docstring."""
    lines = []
    for node in ast.parse((Path(cdp.__file__).parent / "notebook.py").read_text(encoding="utf-8")).body:
        for method in node.body if isinstance(node, ast.ClassDef) else ():
            if not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
                continue
            text = " ".join((ast.get_docstring(method) or "").split("\n\n")[0].split()).replace("``", "`")
            method.args.args = method.args.args[1:]
            called = "" if method.decorator_list else f"({ast.unparse(method.args)})"
            lines += [bullet(f"`{node.name}.{method.name}{called}`", text)] if text else []
    return [*lines, ""]


def build() -> str:
    """The whole page."""
    lines = ["# Reference", "", "Made from the code by `make docs`; do not edit.", "", "## Commands", ""]
    lines += [
        "Each is `cdp …` (in a clone `python -m cdp …`), with `--json` and `--help`. A word in brackets may be left "
        "out. Exit code 0: done, 1: the job failed, 2: bad input, 130: interrupted. `-` is standard input or output "
        "wherever a file is named.",
        "",
        "A setting of the sections below is an option of its command, as `--batch-size 64`, or given by "
        "`--set batch_size=64`. It stands with its default, what is allowed, and in italics the reason for the "
        "default. Without a default it is empty until it is given.",
        "",
    ]
    lines += [*commands(), "", *settings()]
    for kind, (title, facts) in REGISTRIES.items():
        lines += [f"## {title}", ""]
        lines += [*(extension(item, facts) for item in registry(kind).values() if item.offered), ""]
    lines += ["## Languages of content words", "", "Code, language, what counts as a word, stopwords.", ""]
    lines += [*(bullet(f"`{x.code}` {x.name}", f"{x.tokenizer}; {x.stopwords}") for x in LANGUAGES.values()), ""]
    lines += ["## The library", "", "`from cdp import …`, with examples in [LIBRARY.md](LIBRARY.md).", ""]
    for name in cdp.__all__:
        lines += library(name)
    lines += ["### The objects of a workspace", "", "What `Workspace` and its methods return.", "", *objects()]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(build(), encoding="utf-8")
