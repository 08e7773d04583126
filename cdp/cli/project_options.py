"""The commands on projects and their options, and which other commands know ``--project``."""

from __future__ import annotations

from cdp.cli.option import ID, NAME, PROJECT, SET, Commands, Option, flag, option, repeatable, setting
from cdp.services.projects.questions import AddOptions

_CORPUS = repeatable("--corpus", "a corpus; repeatable", metavar="ID")
_BENCHMARK = repeatable("--benchmark", "a benchmark; repeatable", metavar="NAME")

_MAPPED = ("--id-field", "--title-field", "--text-field", "--query-field", "--document-field", "--split-field",
           "--grade-field", "--origin")  # fmt: skip
"""Settings of an import that are options of their own; the others are given by ``--set``."""

COMMANDS: Commands = {
    "projects add": (
        "projects.add",
        "one import: documents, and where they come with them a benchmark and the queries of people, as a project",
        [
            option("path", "documents: a file, a zip or a folder; or all three in BEIR layout"),
            option("--queries", "a file of queries, each with the id of its document, maybe a split and a grade"),
            NAME,
            option("--project", "add to this project instead of a new one"),
            *(setting(AddOptions, name) for name in _MAPPED),
            option("--split", "how text and Markdown files become documents", default=None),
            option("--encoding", "the text encoding, if it is not UTF-8", default=None),
            flag("--look", "only show the columns and the first ten rows; store nothing"),
            SET,
        ],
    ),
    "projects list": ("projects.list_", "the projects: those made, and one for each corpus that is in none", []),
    "projects show": ("projects.show", "one project: what belongs to it, and what is missing for an answer", [ID]),
    "projects use": (
        "projects.use",
        "remember a project: commands without --project are about it; all forgets it",
        [option("name", "its id, name or the beginning of its id; all for none")],
    ),
    "projects create": (
        "projects.create",
        "a new project of corpora and benchmarks that are here",
        [
            option("name", "its name"),
            _CORPUS,
            _BENCHMARK,
            option("--notes", "a text of your own"),
        ],
    ),
    "projects include": ("projects.include", "take corpora and benchmarks into a project", [ID, _CORPUS, _BENCHMARK]),
    "projects exclude": (
        "projects.exclude",
        "take corpora and benchmarks out of a project; they stay in the workspace",
        [ID, _CORPUS, _BENCHMARK],
    ),
    "projects rename": ("projects.rename", "give a project another name", [ID, option("name", "the new name")]),
    "projects note": ("projects.note_", "write a project's notes", [ID, option("notes", "a text of your own")]),
    "projects delete": ("projects.delete", "remove a project; what belonged to it stays", [ID]),
}

KNOWING: dict[str, tuple[str, ...]] = {
    "corpus add": (),
    "corpus list": (),
    "benchmarks add": (),
    "queries preview": ("--corpus",),
    "queries generate": ("--corpus",),
    "queries estimate": ("--corpus",),
    "queries import": ("--corpus",),
    "queries list": (),
    "prompts tune": ("--corpus",),
    "search": ("--corpus",),
    "metrics": ("query_set",),
    "train": ("query_set",),
    "evaluate": ("--benchmark",),
    "results list": (),
    "study list": (),
    "decide": (),
    "study test": ("--corpus",),
    "jobs list": (),
}
"""Commands that are about a project where one is named or remembered: lists show what is its own, what is added joins
it, and these options are filled in where it has one such thing."""


def with_project(commands: Commands) -> Commands:
    """The commands, with ``--project`` for those that know it, and without the need for what a project fills in."""
    return {
        name: (
            handler,
            text,
            [*(_fillable(o, KNOWING[name]) for o in options), PROJECT] if name in KNOWING else options,
        )
        for name, (handler, text, options) in commands.items()
    }


def _fillable(item: Option, names: tuple[str, ...]) -> Option:
    name, details = item
    if name not in names:
        return item
    about = {**details, "default": "", "help": f"{details['help']}; the project's only one if left out"}
    if name.startswith("-"):
        return name, {**about, "required": False}
    return name, {**about, "nargs": "?"}
