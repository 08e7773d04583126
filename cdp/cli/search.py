"""The command that searches."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from cdp.base.config import IndexConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.answers import DONE, FAILED, followed, note, say
from cdp.services.jobs import job_words


def search(workspace: Workspace, a: argparse.Namespace) -> int:
    """``search QUERY --retriever R --corpus ID``; 1 if one of several retrievers could not answer, its reason among the
    answers; if none could, the reason of the first is raised."""
    from cdp.services import search as service

    def ask() -> Any:
        return service.search(workspace, a.query, a.retriever, a.corpus, a.k, keep_warm=a.keep_warm)

    answered = ask()
    unindexed = [answer for answer in answered.answers if answer.index_s is not None]
    if unindexed and a.index:
        for answer in unindexed:
            note(f"indexing with {answer.title}: about {job_words.duration(answer.index_s)}")
            settings = {"retriever": answer.retriever, "collection": answered.collection.id}
            followed(workspace, service.start_index(workspace, IndexConfig.from_dict(settings)))
        answered = ask()
    if all(answer.problem for answer in answered.answers):
        raise ConfigError(_problem(answered.answers[0]))
    value = {
        "query": answered.query,
        "corpus": answered.collection.id,
        "answers": [_value(answer) for answer in answered.answers],
    }
    say(a, value, "\n\n".join(_text(answer) for answer in answered.answers))
    return DONE if not any(answer.problem for answer in answered.answers) else FAILED


def _value(answer: Any) -> dict[str, Any]:
    problem = None if answer.problem is None else {"message": answer.problem.message, "hint": answer.problem.hint}
    return {
        "retriever": answer.retriever,
        "name": answer.title,
        "hits": [asdict(hit) for hit in answer.hits],
        "seconds": {"ready": round(answer.ready_s, 4), "search": round(answer.search_s, 4)},
        "problem": problem,
        "index_seconds": answer.index_s,
    }


def _text(answer: Any) -> str:
    """One retriever's documents, a line each; in place of them what kept it from answering."""
    if answer.problem is not None:
        return f"{answer.title}: {_problem(answer)}"
    head = f"{answer.title} ({1000 * answer.search_s:.0f} ms)"
    if not answer.hits:
        return f"{head}\nNo document shares a word with the query."
    rows = [
        {
            "rank": hit.rank,
            "before": "–" if hit.before is None else hit.before,
            "score": f"{hit.score:.3f}",
            "id": hit.id,
            "document": " ".join(f"{hit.title} · {hit.text}".strip(" ·").split())[:90],
        }
        for hit in answer.hits
    ]
    return f"{head}\n" + display.table(rows, ["rank", "before", "score", "id", "document"], "")


def _problem(answer: Any) -> str:
    """What kept a retriever from answering, and what to do."""
    hint = answer.problem.hint
    if answer.index_s is not None:
        hint = f"That takes about {job_words.duration(answer.index_s)}: add --index, or choose another retriever."
    return f"{answer.problem.message} {hint}".rstrip()
