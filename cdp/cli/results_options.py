"""The commands on results and their options."""

from __future__ import annotations

from cdp.base.config import ResultImportConfig
from cdp.cli.option import WAIT, Commands, flag, option, repeatable, setting

COMPARE_FORMATS = ("table", "csv", "json", "markdown", "latex", "table-csv")
EXPORT_FORMATS = ("trec-run", "trec-qrels", "mteb", "mteb-predictions", "ir-measures")
TESTS = ("t", "randomisation")


_RUN = option("id", "a run by its id or name (all its rows), or the id of one evaluation")

COMMANDS: Commands = {
    "results list": (
        "runs.list_",
        "the leaderboard: every run on every benchmark beside the retriever that it started from, the best first",
        [
            repeatable("--benchmark", "only this one; repeatable"),
            repeatable("--tag", "only runs with this tag; repeatable"),
            option("--match", "only rows in which these words stand", metavar="WORDS"),
            option("--sort", "by this column; -COLUMN for the other direction", metavar="COLUMN"),
            repeatable("--column", "show this column too; repeatable", metavar="COLUMN"),
            flag("--columns", "name the columns that there are, with what they hold"),
            flag("--archived", "archived rows too"),
        ],
    ),
    "results tag": (
        "runs.tag",
        "tag a run, or take tags away",
        [
            _RUN,
            repeatable("--add", "a tag; repeatable", metavar="TAG"),
            repeatable("--remove", "a tag to take away; repeatable", metavar="TAG"),
        ],
    ),
    "results note": ("runs.note", "write a note beside a run", [_RUN, option("text", "the note; empty for none")]),
    "results rename": (
        "runs.rename",
        "give a run a name of your own",
        [_RUN, option("name", "the name; empty for the made one")],
    ),
    "results archive": (
        "runs.archive",
        "take a run, or one evaluation of it, out of the list; nothing is deleted",
        [_RUN, flag("--undo", "bring it back")],
    ),
    "results compare": (
        "results.compare",
        "a table of retrievers by benchmarks, and every difference from a baseline with its tests",
        [
            option("--baseline", "a retriever: preset, training job, or model", required=True),
            repeatable("--retriever", "compare only this one; repeatable"),
            repeatable("--benchmark", "only on this one; repeatable"),
            option("--test", "which test marks significance; csv and json hold both", default="t", choices=TESTS),
            flag("--over-seeds", "average runs whose settings differ in the seed alone"),
            option(
                "--format",
                "markdown, latex, table-csv: a paper's table; csv: every difference in full; json: both",
                default="table",
                choices=COMPARE_FORMATS,
            ),
        ],
    ),
    "results errors": (
        "results.errors",
        "queries that only one of two retrievers answers at rank 1, and at which CW gains sit",
        [
            option("baseline", "a retriever, as results list names it"),
            option("other", "the retriever beside it"),
            option("--benchmark", "the benchmark that both were evaluated on", required=True),
            option("--split", "its split, if both were evaluated on several"),
            option("--protocol", "the protocol, if both were evaluated with several"),
            option(
                "--source",
                "what names the document that a passage is from: a field of corpus.jsonl, id-prefix "
                "(its id without the number at its end), or auto (such a field if all have it, else id-prefix)",
                default="auto",
                metavar="FIELD",
            ),
            option("--language", "of the queries; the benchmark's own if left out"),
            option("--show", "how many wins and losses to show", type=int, default=5),
        ],
    ),
    "results export": (
        "results.export",
        "an evaluation as TREC run or qrels, in MTEB's schema, or as ir_measures' scores per query",
        [
            option("evaluation", "its id, or the beginning of it"),
            option("--format", "what the other program reads", required=True, choices=EXPORT_FORMATS),
            option("--out", "the file or folder; named after the evaluation if left out"),
        ],
    ),
    "results import": (
        "results.import_",
        "take in a run or scores per query of another program, as an evaluation",
        [
            option("path", "a TREC run, MTEB's predictions, or what ir_measures --by_query prints; also .gz"),
            option("--benchmark", "the benchmark that it is on: a name or a BEIR folder", required=True),
            option("--retriever", "what the retriever is called in results", required=True),
            setting(ResultImportConfig, "--split"),
            setting(ResultImportConfig, "--format"),
            setting(ResultImportConfig, "--protocol"),
            WAIT,
        ],
    ),
}
