"""The commands on results and their options."""

from __future__ import annotations

from typing import Any

Option = tuple[str, dict[str, Any]]

COMPARE_FORMATS = ("table", "csv", "json", "markdown", "latex", "table-csv")
EXPORT_FORMATS = ("trec-run", "trec-qrels", "mteb")
TESTS = ("t", "randomisation")


def results_commands() -> dict[str, tuple[str, str, list[Option]]]:
    """Command → (handler, help, options)."""
    return {
        "results list": ("results.every", "every evaluation, the newest first", []),
        "results compare": (
            "results.compare",
            "a table of retrievers by benchmarks, and every difference from a baseline with its tests",
            [
                ("--baseline", {"required": True, "help": "a retriever: preset, training job, or model"}),
                ("--retriever", {"action": "append", "default": [], "help": "compare only this one; repeatable"}),
                ("--benchmark", {"action": "append", "default": [], "help": "only on this one; repeatable"}),
                (
                    "--test",
                    {"default": "t", "choices": TESTS, "help": "which test marks significance; csv and json hold both"},
                ),
                (
                    "--over-seeds",
                    {"action": "store_true", "help": "average runs whose settings differ in the seed alone"},
                ),
                (
                    "--format",
                    {
                        "default": "table",
                        "choices": COMPARE_FORMATS,
                        "help": "markdown, latex, table-csv: a paper's table; csv: every difference in "
                        "full; json: both",
                    },
                ),
            ],
        ),
        "results errors": (
            "results.errors",
            "queries that only one of two retrievers answers at rank 1, and at which CW gains sit",
            [
                ("baseline", {"help": "a retriever, as results list names it"}),
                ("other", {"help": "the retriever beside it"}),
                ("--benchmark", {"required": True, "help": "the benchmark that both were evaluated on"}),
                ("--split", {"default": "", "help": "its split, if both were evaluated on several"}),
                ("--protocol", {"default": "", "help": "the protocol, if both were evaluated with several"}),
                (
                    "--source",
                    {
                        "default": "auto",
                        "metavar": "FIELD",
                        "help": "what names the document that a passage is from: a field of corpus.jsonl, id-prefix "
                        "(its id without the number at its end), or auto (such a field if all have it, else id-prefix)",
                    },
                ),
                ("--language", {"default": "", "help": "of the queries; the benchmark's own if left out"}),
                ("--show", {"type": int, "default": 5, "help": "how many wins and losses to show"}),
            ],
        ),
        "results export": (
            "results.export",
            "an evaluation as TREC run or qrels, or as a result file in MTEB's schema",
            [
                ("evaluation", {"help": "its id, or the beginning of it"}),
                ("--format", {"required": True, "choices": EXPORT_FORMATS, "help": "what the other program reads"}),
                ("--out", {"default": "", "help": "the file or folder; named after the evaluation if left out"}),
            ],
        ),
    }
