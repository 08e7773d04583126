"""The ``--help`` screen, the order of commands, the exit codes. Loads nothing else."""

from __future__ import annotations

from cdp.services.commands import PROGRAM

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def exit_code(done: bool) -> int:
    """Return the exit code of a command that did what it was asked for, or failed."""
    return DONE if done else FAILED


# The first words of all commands, under the headings of the dashboard's menu.
SECTIONS = {
    "Data": {
        "projects": "documents and benchmarks that belong together",
        "corpus": "documents",
        "benchmarks": "evaluation collections: registry, downloads, your own, subsets",
        "queries": "training queries",
        "prompts": "choose a prompt (Algorithm 1)",
        "metrics": "Q-D metrics of a query set",
    },
    "Decide and train": {
        "answer": "from documents to the answer, as one job",
        "decide": "one query, paraphrases or different queries, how many",
        "cw": "content words",
        "study": "the paper's experiment on your own data",
        "train": "train a retriever",
        "sweep": "train once per learning rate",
        "models": "trained models",
        "jobs": "background jobs",
        "cluster": "a Ray cluster that jobs run on",
    },
    "Results": {
        "evaluate": "evaluate a retriever on a benchmark",
        "results": "evaluations",
        "search": "search with up to three retrievers, side by side",
        "serve": "search and OpenAI-compatible embeddings over HTTP",
        "principle": "statistics of the published evidence",
        "published": "the paper's tables and figures",
    },
    "Program": {
        "app": "open the dashboard",
        "demo": "load the demo collection into the workspace",
        "doctor": "check this machine and the workspace",
        "workspace": "the folder that holds all data; free disk space",
        "catalog": "the DuckDB catalogue",
        "completion": "print a script that completes commands in your shell",
    },
}
# The module of this package that declares the commands under a word, where it has another name.
MODULES = {
    "answer": "decide", "corpus": "projects", "prompts": "queries", "metrics": "queries", "cw": "decide",
    "principle": "decide",
    "published": "decide", "study": "decide", "train": "results", "sweep": "decide", "models": "results",
    "evaluate": "results", "cluster": "jobs", "search": "program", "serve": "program", "app": "program",
    "demo": "program", "doctor": "program", "workspace": "program", "catalog": "program", "completion": "program",
}  # fmt: skip


def overview() -> str:
    """Return what ``--help`` shows: the first word of every command on one screen."""
    lines = [f"usage: {PROGRAM} COMMAND …", ""]
    for heading, words in SECTIONS.items():
        lines += [heading, *(f"  {word:<12}{text}" for word, text in words.items())]
    lines += ["", "COMMAND --help: its words and options; --json: answer in JSON; --version."]
    return "\n".join(lines)
