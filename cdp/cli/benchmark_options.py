"""The commands on benchmarks: the registry, downloads, subsets."""

from __future__ import annotations

from typing import Any

from cdp.base.config import DownloadConfig

Option = tuple[str, dict[str, Any]]

NAME: Option = (
    "name",
    {"help": "a benchmark or a group (ms-marco, trec-dl, beir, bright, multi-hop, miracl, miracl-train, nanobeir)"},
)


def _help(field: str) -> str:
    text: str = DownloadConfig.__dataclass_fields__[field].metadata["help"]
    return text.replace("%", "%%")


def commands(wait: Option) -> dict[str, tuple[str, str, list[Option]]]:
    """Command words → (handler's name; help; options). ``wait`` is the option that follows a job."""
    stored: Option = ("name", {"help": "a benchmark of the workspace"})
    return {
        "benchmarks list": (
            "benchmarks.known",
            "the registry and the workspace's own benchmarks, with sizes, licences and CW",
            [("--group", {"default": "", "help": "only of this group"})],
        ),
        "benchmarks show": (
            "benchmarks.show",
            "one benchmark or group: size, licence, protocol, source, and scores of a group with their coverage",
            [NAME, ("--hub", {"action": "store_true", "help": "also ask the hub for the size of the download"})],
        ),
        "benchmarks download": (
            "benchmarks.download",
            "bring a benchmark, or all of a group, into the workspace, as a job",
            [
                NAME,
                ("--revision", {"default": "", "help": _help("revision")}),
                ("--from", {"dest": "folder", "default": "", "metavar": "FOLDER", "help": _help("folder")}),
                ("--name", {"dest": "called", "default": "", "help": _help("name")}),
                wait,
            ],
        ),
        "benchmarks add": (
            "benchmarks.add",
            "take a folder or zip in BEIR layout into the workspace",
            [
                ("path", {"help": "the folder or zip"}),
                ("--name", {"default": "", "help": "a name for it"}),
                ("--language", {"default": "", "help": "code of its language (zh, en …); guessed if left out"}),
            ],
        ),
        "benchmarks sample": (
            "benchmarks.sample",
            "draw a small subset of a stored benchmark: some queries, all that answers them, other documents",
            [
                stored,
                ("--queries", {"type": int, "default": 50, "help": "queries to draw"}),
                ("--documents", {"type": int, "default": 2000, "help": "documents in all"}),
                ("--split", {"default": "", "help": "the split to draw from"}),
                ("--seed", {"type": int, "default": 0, "help": "another draw"}),
                ("--name", {"dest": "called", "default": "", "help": "a name for it; says its size if left out"}),
            ],
        ),
        "benchmarks training-set": (
            "benchmarks.training_set",
            "a corpus and a query set of the judged queries of stored benchmarks, to train on; several are mixed",
            [
                ("names", {"nargs": "+", "metavar": "name", "help": "benchmarks of the workspace: miracl-ja-train …"}),
                ("--split", {"default": "", "help": "the split to train on; train if there is one"}),
                ("--name", {"default": "", "help": "a name for the corpus and its queries"}),
            ],
        ),
        "benchmarks delete": ("benchmarks.delete", "remove a benchmark from the workspace; results stay", [stored]),
    }
