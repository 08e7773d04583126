"""The commands on benchmarks: the registry, downloads, subsets."""

from __future__ import annotations

from cdp.base.config import DownloadConfig
from cdp.cli.option import WAIT, Commands, Option, flag, option

_NAME: Option = option(
    "name", "a benchmark or a group (ms-marco, trec-dl, beir, bright, multi-hop, miracl, miracl-train, nanobeir)"
)


def _help(field: str) -> str:
    return DownloadConfig.settings()[field].help.replace("%", "%%")


_STORED = option("name", "a benchmark of the workspace")

COMMANDS: Commands = {
    "benchmarks list": (
        "benchmarks.list_",
        "the registry and the workspace's own benchmarks, with sizes, licences and CW",
        [option("--group", "only of this group")],
    ),
    "benchmarks show": (
        "benchmarks.show",
        "one benchmark or group: size, licence, protocol, source, and scores of a group with their coverage",
        [_NAME, flag("--hub", "also ask the hub for the size of the download")],
    ),
    "benchmarks download": (
        "benchmarks.download",
        "bring a benchmark, or all of a group, into the workspace, as a job",
        [
            _NAME,
            option("--revision", _help("revision")),
            option("--from", _help("folder"), dest="folder", metavar="FOLDER"),
            option("--name", _help("name"), dest="called"),
            WAIT,
        ],
    ),
    "benchmarks add": (
        "benchmarks.add",
        "take a folder or zip in BEIR layout into the workspace",
        [
            option("path", "the folder or zip"),
            option("--name", "a name for it"),
            option("--language", "code of its language (zh, en …); guessed if left out"),
        ],
    ),
    "benchmarks sample": (
        "benchmarks.sample",
        "draw a small subset, NAME-sample-50q-2000d: some queries, all that answers them, other documents",
        [
            _STORED,
            option("--queries", "queries to draw", type=int, default=50),
            option("--documents", "documents in all", type=int, default=2000),
            option("--split", "the split to draw from"),
            option("--seed", "another draw", type=int, default=0),
            option("--name", "a name for it; says its size if left out", dest="called"),
        ],
    ),
    "benchmarks training-set": (
        "benchmarks.training_set",
        "a corpus and a query set of the judged queries of stored benchmarks, to train on; several are mixed",
        [
            option("names", "benchmarks of the workspace: miracl-ja-train …", nargs="+", metavar="name"),
            option("--split", "the split to train on; train if there is one"),
            option("--name", "a name for the corpus and its queries"),
        ],
    ),
    "benchmarks delete": ("benchmarks.delete", "remove a benchmark from the workspace; results stay", [_STORED]),
}
