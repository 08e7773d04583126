"""The commands and options of the command line, as one table: the parser and the reference are made from it."""

from __future__ import annotations

from typing import Any

from cdp.base.config import EvaluationConfig, MetricsConfig, PromptTuningConfig, SynthesisConfig
from cdp.base.registry import Names
from cdp.cli import benchmark_options
from cdp.cli.results_options import results_commands
from cdp.cli.training_options import ALLOW_INCOMPLETE, ALLOW_LEAKAGE, training_commands
from cdp.cli.workspace_options import workspace_commands

ORIGINS = ("human", "llm", "unknown")
ORIGIN_DETAILS = (
    ("--model", {"default": None, "help": "for llm: the model that wrote them"}),
    ("--prompt", {"default": None, "help": "for llm: the prompt, its name, or where it is described"}),
    ("--licence", {"default": None, "help": "the licence of the queries"}),
)
SET = (
    "--set",
    {"action": "append", "default": [], "metavar": "FIELD=VALUE", "help": "any further setting; repeatable"},
)
WAIT = ("--wait", {"action": "store_true", "help": "follow the job to its end; Ctrl-C leaves it running"})
NAME = ("--name", {"default": "", "help": "a name for it"})
STOPWORDS = (
    "--stopwords",
    {
        "default": "standard",
        "metavar": "LIST",
        "help": "words that do not count for CW: standard, question-words-kept (fr, zh), or a file with one per line",
    },
)
CORPUS = ("--corpus", {"required": True, "help": "the corpus: its id, name or the beginning of its id"})

Option = tuple[str, dict[str, Any]]


def _choice(config: type, field: str) -> dict[str, Any]:
    """Choices, default and help of an option, from the configuration's field."""
    f = config.__dataclass_fields__[field]  # type: ignore[attr-defined]
    found: dict[str, Any] = {"default": f.default, "help": f.metadata["help"].replace("%", "%%")}
    if f.metadata["choices"]:
        found["choices"] = f.metadata["choices"]
    if isinstance(f.default, int):
        found["type"] = int
    return found


def commands() -> dict[str, tuple[str, str, list[Option]]]:
    """Command words → (handler's name, see ``parser.run``; help; options)."""
    cw: list[Option] = [
        ("query_set", {"nargs": "?", "default": "", "help": "a query set"}),
        ("--file", {"default": "", "help": "a text file with one query per line, or JSONL with a text field"}),
        ("--benchmark", {"default": "", "help": "the queries of a benchmark"}),
        ("--split", {"default": "", "help": "the benchmark's split"}),
        ("--language", {"default": "", "help": "language of the queries, as en, fr, zh; found out if left out"}),
        STOPWORDS,
    ]
    evidence: list[Option] = [
        (
            "--datasets",
            {"default": "multi-hop", "choices": ("multi-hop", "all"), "help": "the four multi-hop sets, or all 31"},
        ),
        (
            "--implied",
            {"action": "store_true", "help": "with the lower HotpotQA scores that RetroMAE's BEIR averages imply"},
        ),
    ]
    written: list[Option] = [
        ("--method", _choice(SynthesisConfig, "method")),
        ("--per-doc", _choice(SynthesisConfig, "per_doc")),
        ("--generator", {**_choice(SynthesisConfig, "generator"), "default": "openai"}),
    ]
    plan: Option = ("file", {"help": "a plan in YAML, or the name of a ready-made one"})
    one_id: Option = ("id", {"help": "its id, name or the beginning of its id"})
    return {
        "corpus add": (
            "corpus_add",
            "read documents from a file or folder and store them once",
            [
                (
                    "path",
                    {"help": "jsonl, json, csv, tsv, parquet, txt, md (also .gz), a zip or folder of them, or BEIR"},
                ),
                NAME,
                ("--format", {"default": None, "help": "the format, where the ending does not tell it"}),
                ("--encoding", {"default": None, "help": "the text encoding, if it is not UTF-8"}),
                ("--id-field", {"default": None, "help": "the field or column with the document's id"}),
                ("--title-field", {"default": None, "help": "the field or column with the title"}),
                ("--text-field", {"default": None, "help": "the field or column with the text"}),
                ("--split", {"default": None, "help": "how text and Markdown files become documents"}),
                SET,
            ],
        ),
        "corpus delete": ("corpus_delete", "remove a corpus that no query set was made for", [one_id]),
        "corpus list": ("corpus_list", "the corpora in the workspace", []),
        "corpus show": ("corpus_show", "one corpus", [one_id]),
        **benchmark_options.commands(WAIT),
        "queries preview": (
            "queries.preview",
            "queries of several methods for one document, without storing them",
            [
                CORPUS,
                ("--doc", {"default": "", "help": "the document's id; the first document if left out"}),
                ("--methods", {"default": "diverse,paraphrase", "help": "methods, separated by commas"}),
                ("--per-doc", _choice(SynthesisConfig, "per_doc")),
                ("--generator", _choice(SynthesisConfig, "generator")),
                SET,
            ],
        ),
        "queries generate": (
            "queries.generate",
            "write queries for a corpus, as a job",
            [
                CORPUS,
                ("--method", _choice(SynthesisConfig, "method")),
                ("--per-doc", _choice(SynthesisConfig, "per_doc")),
                ("--generator", _choice(SynthesisConfig, "generator")),
                SET,
                WAIT,
            ],
        ),
        "queries estimate": (
            "queries.estimate",
            "tokens, price and time of writing queries for a corpus, before it starts",
            [
                CORPUS,
                *written,
                ("--tokens-per-query", {"type": float, "default": None, "help": "output tokens, from a preview"}),
                ("--latency", {"type": float, "default": None, "help": "seconds per request, from a preview"}),
                SET,
            ],
        ),
        "queries prices": (
            "queries.prices",
            "the price table, and changes to it",
            [
                (
                    "--model",
                    {
                        "action": "append",
                        "default": [],
                        "metavar": "NAME=INPUT/OUTPUT[/DISCOUNT]",
                        "help": "US dollars per million tokens, and the share that batches save; repeatable",
                    },
                ),
                ("--as-of", {"default": "", "help": "the day of these prices; today if left out"}),
            ],
        ),
        "queries export": (
            "queries.export",
            "write a query set for another program",
            [
                one_id,
                (
                    "--format",
                    {"required": True, "choices": Names("export format"), "help": "what the other program reads"},
                ),
                ("--out", {"default": "", "help": "the file or folder; named after the set if left out"}),
                ("--per-doc", {"type": int, "default": None, "help": "only the first so many queries per document"}),
                ("--model", {"default": "", "help": "for openai-batch: the model to ask, if not the set's own"}),
            ],
        ),
        "queries leave-out": (
            "queries.leave_out",
            "a copy of a query set without the queries that a benchmark judges",
            [
                one_id,
                (
                    "--judged-by",
                    {
                        "required": True,
                        "action": "append",
                        "metavar": "BENCHMARK[:SPLIT]",
                        "help": "whose queries are left out; repeatable",
                    },
                ),
                ("--name", {"default": "", "help": "the copy's name"}),
            ],
        ),
        "queries batch-write": (
            "queries.batch_write",
            "write a job's open requests as OpenAI Batch JSONL, for the Batch API or vllm run-batch",
            [CORPUS, *written, ("--out", {"required": True, "help": "the folder for the files"}), SET],
        ),
        "queries batch-read": (
            "queries.batch_read",
            "keep the answers of a batch; the same job, started as usual, then finds them",
            [("path", {"help": "the batch's output file"})],
        ),
        "queries import": (
            "queries.bring",
            "import queries that exist",
            [
                ("path", {"help": "JSONL, JSON (also with negatives), CSV or TSV with document ids, or a BEIR folder"}),
                CORPUS,
                NAME,
                ("--query-field", {"default": None, "help": "the field or column with the query"}),
                ("--document-field", {"default": None, "help": "the field or column with the document's id"}),
                ("--encoding", {"default": None, "help": "the text encoding, if it is not UTF-8"}),
                ("--split", {"default": None, "help": "of a BEIR folder only this split's judgments"}),
                ("--reasoning-field", {"default": None, "help": "the field or column with the reasoned form q′"}),
                ("--origin", {"default": None, "choices": ORIGINS, "help": "who wrote the queries; unknown if unsaid"}),
                *ORIGIN_DETAILS,
                SET,
            ],
        ),
        "queries best": (
            "queries.best",
            "keep the best queries by mean token log-probability (InPars' filter), as a new set",
            [one_id, ("--keep", {"type": int, "required": True, "help": "queries to keep, over all documents"}), NAME],
        ),
        "queries origin": (
            "queries.origin",
            "say who wrote an imported query set, and under which licence",
            [one_id, ("origin", {"choices": ORIGINS, "help": "who wrote the queries"}), *ORIGIN_DETAILS],
        ),
        "queries show": (
            "queries.shown",
            "one query set: where it is from, its first queries, and what is missing and why",
            [one_id],
        ),
        "queries delete": ("queries.delete", "remove a query set; what was trained on it stays", [one_id]),
        "queries list": (
            "queries.every",
            "the query sets",
            [("--corpus", {"default": "", "help": "only of this corpus"})],
        ),
        "metrics": (
            "metrics",
            "Q-D metrics of a query set: the quick ones at once, the model-based ones as a job",
            [
                ("query_set", {"help": "the query set"}),
                ("--human", {"default": "", "help": "a query set with human queries for the same documents"}),
                ("--quick", {"action": "store_true", "help": "only what needs no model"}),
                ("--language", _choice(MetricsConfig, "language")),
                STOPWORDS,
                SET,
                WAIT,
            ],
        ),
        "prompts tune": (
            "prompts.tune",
            "try candidate prompts on a sample of documents and choose one, as a job",
            [
                CORPUS,
                ("--methods", _choice(PromptTuningConfig, "methods")),
                (
                    "--prompt",
                    {
                        "action": "append",
                        "default": [],
                        "metavar": "FILE",
                        "help": "a prompt of your own with {document} and {M} in it; repeatable",
                    },
                ),
                ("--target", _choice(PromptTuningConfig, "target")),
                ("--documents", _choice(PromptTuningConfig, "documents")),
                ("--per-doc", _choice(PromptTuningConfig, "per_doc")),
                ("--generator", _choice(PromptTuningConfig, "generator")),
                ("--human", _choice(PromptTuningConfig, "human")),
                SET,
                WAIT,
            ],
        ),
        "prompts show": ("prompts.shown", "what was measured of each candidate, and the choice", [one_id]),
        "prompts choose": (
            "prompts.choose",
            "your own choice in place of the algorithm's",
            [one_id, ("candidate", {"help": "the candidate's name"})],
        ),
        "cw profile": ("cw", "how many content words queries have", cw),
        "cw recommend": (
            "cw",
            "avoid, test or recommend diverse queries for a task with such queries",
            [
                *cw,
                (
                    "--domain",
                    {
                        "default": "ood",
                        "choices": ("ood", "in-domain"),
                        "help": "do they differ from the training queries?",
                    },
                ),
                (
                    "--task",
                    {
                        "default": "",
                        "metavar": "KIND",
                        "help": "the kind of task: multi-hop, fact-checking, reasoning … (known for the paper's "
                        "benchmarks; a wrong one lists them)",
                    },
                ),
                ("--generator", {"default": "", "help": "the model that is to write the queries"}),
                ("--corpus", {"default": "", "help": "the corpus that they are to be written for: gives the price"}),
                ("--budget", {"type": int, "default": None, "help": "queries that may be written in all"}),
                ("--documents", {"type": int, "default": None, "help": "documents that there are"}),
            ],
        ),
        **training_commands(_choice, one_id, SET, WAIT, NAME),
        "evaluate": (
            "evaluate",
            "evaluate a retriever on a benchmark, as a job",
            [
                ("retriever", {"help": "a preset, a training job's id, or a model's name or folder"}),
                ("--benchmark", {"required": True, "help": "a benchmark, a group (beir …) or a BEIR folder"}),
                ("--split", _choice(EvaluationConfig, "split")),
                ("--protocol", _choice(EvaluationConfig, "protocol")),
                SET,
                WAIT,
            ],
        ),
        **results_commands(),
        "principle correlation": ("principle.principle", "CW against the published gains, per condition", evidence),
        "principle rates": ("principle.principle", "on how many conditions each dataset gained", evidence),
        "principle threshold": ("principle.principle", "the CW at which the published gains cross zero", evidence),
        "principle check": (
            "principle.principle",
            "predictions for the published datasets that the line never saw, and whether they hold",
            [("--per-doc", {"type": int, "default": 5, "choices": (2, 5, 10, 20), "help": "queries per document"})],
        ),
        "principle claims": ("principle.principle", "the paper's claims and limits, each computed anew", []),
        "published list": ("principle.published_list", "the paper's tables and figures", []),
        "published show": (
            "principle.published_show",
            "one published table, as printed, with notes where numbers disagree",
            [
                ("table", {"help": "its name, as multihop_scaling"}),
                ("--format", {"default": "table", "choices": ("table", "csv")}),
            ],
        ),
        "study list": ("principle.study_list", "the ready-made plans, and the studies of this workspace", []),
        "study plan": (
            "principle.study_plan",
            "what a study would run, cost and take, without starting it",
            [plan, SET],
        ),
        "study run": (
            "principle.study_run",
            "run a study as a job; jobs resume goes on with it",
            [plan, ALLOW_INCOMPLETE, ALLOW_LEAKAGE, SET, WAIT],
        ),
        "study report": (
            "principle.study_report",
            "what a study found, finished or not",
            [
                one_id,
                ("--format", {"default": "markdown", "choices": ("markdown", "html"), "help": "html has figures"}),
                ("--out", {"default": "", "help": "write it to this file"}),
            ],
        ),
        "jobs list": ("jobs.every", "all jobs, the newest first", []),
        "jobs show": ("jobs.shown", "one job", [one_id]),
        "jobs logs": ("jobs.logs", "a job's log", [one_id, ("-f", {"dest": "follow", "action": "store_true"})]),
        "jobs wait": ("jobs.wait", "follow a job to its end; Ctrl-C leaves it running", [one_id]),
        "jobs stop": ("jobs.stop", "ask a job to save what it has and end", [one_id]),
        "jobs clone": (
            "jobs.clone",
            "start a job once more, with changed settings",
            [one_id, ALLOW_INCOMPLETE, ALLOW_LEAKAGE, SET, WAIT],
        ),
        "jobs delete": (
            "jobs.delete",
            "delete a job that has ended, with everything it made",
            [one_id, ("--yes", {"action": "store_true", "help": "do not ask"})],
        ),
        "jobs resume": ("jobs.resume", "go on with a job from its last checkpoint", [one_id, WAIT]),
        **workspace_commands(),
        "catalog rebuild": ("catalog_rebuild", "make the catalogue anew from the files", []),
        "catalog query": ("catalog_query", "run a read-only SQL query", [("sql", {"help": "the query"})]),
        "demo": ("demo", "load the demo collection into the workspace", []),
        "doctor": ("doctor", "check this machine and the workspace", []),
    }


GROUPS = {
    "corpus": "documents",
    "benchmarks": "evaluation collections: known by name, downloads, your own, subsets",
    "queries": "training queries",
    "prompts": "choosing a prompt (Algorithm 1)",
    "cw": "content words",
    "results": "evaluations",
    "principle": "statistics of the published evidence",
    "published": "the paper's tables and figures",
    "sweep": "learning rates",
    "study": "the paper's experiment on one's own data",
    "jobs": "background jobs",
    "workspace": "backup, moving to another machine, clearing away",
    "catalog": "the DuckDB catalogue",
}
