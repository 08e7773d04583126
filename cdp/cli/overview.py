"""What ``cdp --help`` shows: every command in one line, in the order in which one needs them, on one screen."""

from __future__ import annotations

import re
from collections.abc import Mapping

SECTIONS = {
    "Data": ("projects", "corpus", "benchmarks", "queries", "prompts"),
    "Analyse": ("metrics", "cw", "decide", "principle", "published"),
    "Train": ("train", "sweep", "models", "jobs", "cluster"),
    "Results": ("evaluate", "results", "search", "serve", "study"),
    "Program": ("app", "demo", "doctor", "workspace", "catalog", "completion"),
}
"""The first words of all commands, under the headings of the dashboard's menu. A test fails for one that is missing."""


def overview(program: str, texts: Mapping[str, str]) -> str:
    """The help of the whole command line; ``texts`` are what the first words of commands do."""
    lines = [f"usage: {program} COMMAND …", ""]
    for heading, words in SECTIONS.items():
        lines.append(heading)
        # The part before a colon or semicolon says what it is; the help of the command itself has the rest.
        lines += [f"  {word:<12}{re.split('[:;]', texts[word])[0]}" for word in words if word in texts]
    lines += ["", "COMMAND --help: its words and options; --json: answer in JSON; --version."]
    return "\n".join(lines) + "\n"


GROUPS = {
    "projects": "documents and benchmarks that belong together; and all that is made of them",
    "corpus": "documents",
    "benchmarks": "evaluation collections: known by name, downloads, your own, subsets",
    "queries": "training queries",
    "prompts": "choosing a prompt (Algorithm 1)",
    "cw": "content words",
    "models": "trained models: cards, the Hugging Face hub",
    "results": "evaluations",
    "principle": "statistics of the published evidence",
    "published": "the paper's tables and figures",
    "sweep": "learning rates",
    "study": "the paper's experiment on one's own data",
    "jobs": "background jobs",
    "cluster": "a Ray cluster that jobs run on",
    "workspace": "its folder, and freeing disk space",
    "catalog": "the DuckDB catalogue",
}
"""What the commands under a first word are about."""
