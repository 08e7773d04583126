"""The commands and options of the command line, as one table: the parser and the reference are made from it."""

from __future__ import annotations

from cdp.base.config import EvaluationConfig, MetricsConfig, PromptTuningConfig, SynthesisConfig
from cdp.base.registry import Names
from cdp.cli import (
    benchmark_options,
    cluster_options,
    models_options,
    program_options,
    project_options,
    results_options,
    review_options,
    search_options,
    training_options,
)
from cdp.cli.option import (
    ALLOW_INCOMPLETE,
    ALLOW_LEAKAGE,
    ALLOW_OUTSIDE,
    ID,
    NAME,
    SET,
    WAIT,
    Commands,
    Option,
    flag,
    option,
    repeatable,
    setting,
)
from cdp.studies.trial import TrialConfig

ORIGINS = ("human", "llm", "unknown")
ORIGIN_DETAILS = (
    option("--model", "for llm: the model that wrote them", default=None),
    option("--prompt", "for llm: the prompt, its name, or where it is described", default=None),
    option("--licence", "the licence of the queries", default=None),
)
STOPWORDS = option(
    "--stopwords",
    "words that do not count for CW: standard, question-words-kept (fr, zh), or a file with one per line",
    default="standard",
    metavar="LIST",
)
CORPUS = option("--corpus", "the corpus: its id, name or the beginning of its id", required=True)


def commands() -> Commands:
    """Command words → (handler's name, see ``parser.run``; help; options)."""
    return cluster_options.with_place(project_options.with_project(_commands()))


def _commands() -> Commands:
    cw: list[Option] = [
        option("query_set", "a query set", nargs="?", default=""),
        option("--file", "a text file with one query per line, or JSONL with a text field"),
        option("--benchmark", "the queries of a benchmark"),
        option("--split", "the benchmark's split"),
        option("--language", "language of the queries, as en, fr, zh; found out if left out"),
        STOPWORDS,
    ]
    evidence: list[Option] = [
        option("--datasets", "the four multi-hop sets, or all 31", default="multi-hop", choices=("multi-hop", "all")),
        flag("--implied", "with the lower HotpotQA scores that RetroMAE's BEIR averages imply"),
    ]
    written: list[Option] = [
        setting(SynthesisConfig, "--method"),
        setting(SynthesisConfig, "--per-doc"),
        ("--generator", {**setting(SynthesisConfig, "--generator")[1], "default": "openai"}),
    ]
    plan: Option = option("file", "a plan in YAML, or the name of a ready-made one")
    return {
        **project_options.COMMANDS,
        **cluster_options.COMMANDS,
        "corpus add": (
            "corpus_add",
            "read documents from a file or folder and store them once",
            [
                option("path", "jsonl, json, csv, tsv, parquet, txt, md (also .gz), a zip or folder of them, or BEIR"),
                NAME,
                option("--format", "the format, where the ending does not tell it", default=None),
                option("--encoding", "the text encoding, if it is not UTF-8", default=None),
                option("--id-field", "the field or column with the document's id", default=None),
                option("--title-field", "the field or column with the title", default=None),
                option("--text-field", "the field or column with the text", default=None),
                option("--split", "how text and Markdown files become documents", default=None),
                option("--licence", "the licence of the documents", default=None),
                SET,
            ],
        ),
        "corpus delete": ("corpus_delete", "remove a corpus that no query set was made for", [ID]),
        "corpus list": ("corpus_list", "the corpora in the workspace", []),
        "corpus show": ("corpus_show", "one corpus", [ID]),
        **benchmark_options.COMMANDS,
        "queries preview": (
            "queries.preview",
            "queries of several methods for one document, without storing them",
            [
                CORPUS,
                option("--doc", "the document's id; the first document if left out"),
                option("--methods", "methods, separated by commas", default="diverse,paraphrase"),
                setting(SynthesisConfig, "--per-doc"),
                setting(SynthesisConfig, "--generator"),
                SET,
            ],
        ),
        "queries generate": (
            "queries.generate",
            "write queries for a corpus, as a job",
            [
                CORPUS,
                setting(SynthesisConfig, "--method"),
                setting(SynthesisConfig, "--per-doc"),
                setting(SynthesisConfig, "--generator"),
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
                option("--tokens-per-query", "output tokens, from a preview", type=float),
                option("--latency", "seconds per request, from a preview", type=float),
                SET,
            ],
        ),
        "queries prices": (
            "queries.prices",
            "the price table, and changes to it",
            [
                repeatable(
                    "--model",
                    "US dollars per million tokens, and the share that batches save; repeatable",
                    metavar="NAME=INPUT/OUTPUT[/DISCOUNT]",
                ),
                option("--as-of", "the day of these prices; today if left out"),
            ],
        ),
        "queries export": (
            "queries.export",
            "write a query set for another program",
            [
                ID,
                option("--format", "what the other program reads", required=True, choices=Names("export format")),
                option("--out", "the file or folder; named after the set if left out"),
                option("--per-doc", "only the first so many queries per document", type=int),
                option("--model", "for openai-batch: the model to ask, if not the set's own"),
            ],
        ),
        "queries leave-out": (
            "queries.leave_out",
            "a copy of a query set without the queries that a benchmark judges",
            [
                ID,
                option(
                    "--judged-by",
                    "whose queries are left out; repeatable",
                    required=True,
                    action="append",
                    metavar="BENCHMARK[:SPLIT]",
                ),
                option("--name", "the copy's name"),
            ],
        ),
        **review_options.COMMANDS,
        "queries batch-write": (
            "queries.batch_write",
            "write a job's open requests as OpenAI Batch JSONL, for the Batch API or vllm run-batch",
            [CORPUS, *written, option("--out", "the folder for the files", required=True), SET],
        ),
        "queries batch-read": (
            "queries.batch_read",
            "keep the answers of a batch; the same job, started as usual, then finds them",
            [option("path", "the batch's output file")],
        ),
        "queries import": (
            "queries.import_",
            "import queries that exist",
            [
                option("path", "JSONL, JSON (also with negatives), CSV or TSV with document ids, or a BEIR folder"),
                CORPUS,
                NAME,
                option("--query-field", "the field or column with the query", default=None),
                option("--document-field", "the field or column with the document's id", default=None),
                option("--encoding", "the text encoding, if it is not UTF-8", default=None),
                option("--split", "of a BEIR folder only this split's judgments", default=None),
                option("--reasoning-field", "the field or column with the reasoned form q′", default=None),
                option("--origin", "who wrote the queries; unknown if unsaid", default=None, choices=ORIGINS),
                *ORIGIN_DETAILS,
                SET,
            ],
        ),
        "queries best": (
            "queries.best",
            "keep the best queries by mean token log-probability (InPars' filter), as a new set",
            [ID, option("--keep", "queries to keep, over all documents", type=int, required=True), NAME],
        ),
        "queries origin": (
            "queries.origin",
            "say who wrote an imported query set, and under which licence",
            [ID, option("origin", "who wrote the queries", choices=ORIGINS), *ORIGIN_DETAILS],
        ),
        "queries show": (
            "queries.show",
            "one query set: where it is from, its first queries, and what is missing and why",
            [ID],
        ),
        "queries delete": ("queries.delete", "remove a query set; what was trained on it stays", [ID]),
        "queries list": (
            "queries.list_",
            "the query sets",
            [option("--corpus", "only of this corpus")],
        ),
        "metrics": (
            "metrics",
            "Q-D metrics of a query set: the quick ones at once, the model-based ones as a job",
            [
                option("query_set", "the query set"),
                option("--human", "a query set with human queries for the same documents"),
                flag("--quick", "only what needs no model"),
                setting(MetricsConfig, "--language"),
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
                setting(PromptTuningConfig, "--methods"),
                repeatable(
                    "--prompt", "a prompt of your own with {document} and {M} in it; repeatable", metavar="FILE"
                ),
                setting(PromptTuningConfig, "--target"),
                setting(PromptTuningConfig, "--documents"),
                setting(PromptTuningConfig, "--per-doc"),
                setting(PromptTuningConfig, "--generator"),
                setting(PromptTuningConfig, "--human"),
                SET,
                WAIT,
            ],
        ),
        "prompts show": ("prompts.show", "what was measured of each candidate, and the choice", [ID]),
        "prompts choose": (
            "prompts.choose",
            "your own choice in place of the algorithm's",
            [ID, option("candidate", "the candidate's name")],
        ),
        "cw profile": ("cw", "how many content words queries have", cw),
        "cw recommend": (
            "cw",
            "avoid, test or recommend diverse queries for a task with such queries",
            [
                *cw,
                option(
                    "--domain", "do they differ from the training queries?", default="ood", choices=("ood", "in-domain")
                ),
                option(
                    "--task",
                    "the kind of task: multi-hop, fact-checking, reasoning … (known for the paper's "
                    "benchmarks; a wrong one lists them)",
                    metavar="KIND",
                ),
                option("--generator", "the model that is to write the queries"),
                option("--corpus", "the corpus that they are to be written for: gives the price"),
                option("--budget", "queries that may be written in all", type=int),
                option("--documents", "documents that there are", type=int),
            ],
        ),
        "decide": (
            "decide.decide",
            "one query, paraphrases or different queries, how many: what is best known, own studies first",
            [
                *cw,
                option("--corpus", "the corpus that queries are to be written for"),
                option(
                    "--domain", "do they differ from the training queries?", default="ood", choices=("ood", "in-domain")
                ),
                option("--task", "the kind of task, as in cw recommend", metavar="KIND"),
            ],
        ),
        **training_options.COMMANDS,
        **models_options.COMMANDS,
        "evaluate": (
            "evaluate",
            "evaluate a retriever on a benchmark, as a job",
            [
                option("retriever", "a preset, a training's id or name, or a model's name or folder"),
                option("--benchmark", "a benchmark, a group (beir …) or a BEIR folder", required=True),
                setting(EvaluationConfig, "--split"),
                setting(EvaluationConfig, "--protocol"),
                SET,
                WAIT,
            ],
        ),
        **search_options.COMMANDS,
        **results_options.COMMANDS,
        "principle correlation": ("principle.principle", "CW against the published gains, per condition", evidence),
        "principle rates": ("principle.principle", "on how many conditions each dataset gained", evidence),
        "principle threshold": ("principle.principle", "the CW at which the published gains cross zero", evidence),
        "principle check": (
            "principle.principle",
            "predictions for the published datasets that the line never saw, and whether they hold",
            [option("--per-doc", "queries per document", type=int, default=5, choices=(2, 5, 10, 20))],
        ),
        "principle claims": ("principle.principle", "the paper's claims and limits, each computed anew", []),
        "published list": ("principle.published_list", "the paper's tables and figures", []),
        "published show": (
            "principle.published_show",
            "one published table, as printed, with notes where numbers disagree",
            [
                option("table", "its name, as multihop_scaling"),
                option("--format", default="table", choices=("table", "csv")),
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
        "study test": (
            "decide.study_test",
            "the three-minute test on your own data: shows what it takes, and starts it with --yes",
            [
                option("--corpus", "the corpus to train on", required=True),
                *(
                    option(f"--{name.replace('_', '-')}", facts.help, default=None, type=facts.kind)
                    for name, facts in TrialConfig.settings().items()
                    if name != "corpus"
                ),
                ALLOW_LEAKAGE,
                flag("--yes", "start it"),
                WAIT,
            ],
        ),
        "study report": (
            "principle.study_report",
            "what a study found, finished or not",
            [
                ID,
                option("--format", "html has figures", default="markdown", choices=("markdown", "html")),
                option("--out", "write it to this file"),
            ],
        ),
        "jobs list": ("jobs.list_", "all jobs, the newest first", []),
        "jobs show": ("jobs.show", "one job", [ID]),
        "jobs logs": ("jobs.logs", "a job's log", [ID, option("-f", dest="follow", action="store_true")]),
        "jobs wait": ("jobs.wait", "follow a job to its end; Ctrl-C leaves it running", [ID]),
        "jobs stop": ("jobs.stop", "ask a job to save what it has and end", [ID]),
        "jobs clone": (
            "jobs.clone",
            "start a job once more, with changed settings",
            [ID, ALLOW_INCOMPLETE, ALLOW_LEAKAGE, ALLOW_OUTSIDE, SET, WAIT],
        ),
        "jobs delete": (
            "jobs.delete",
            "delete a job that has ended, with everything it made",
            [ID, flag("--yes", "do not ask")],
        ),
        "jobs resume": ("jobs.resume", "go on with a job from its last checkpoint", [ID, ALLOW_OUTSIDE, WAIT]),
        **program_options.COMMANDS,
    }
