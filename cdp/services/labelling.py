"""People label what a model judged: whole queries out of a random order, with undo, and how well judges agree."""

from __future__ import annotations

from collections.abc import Mapping

from cdp.base import actions
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.benchmarks import judged
from cdp.evaluation.labelling import ANSWERS_OF, NOTHING, UNDO, Task, pool_of
from cdp.services import access


@access.writes
def label(workspace: Workspace, name: str, query: str, answers: Mapping[str, str], by: str) -> None:
    """Store a person's answers {document: word of ``ANSWERS_OF``} for one query: one action, which undo takes back."""
    folder, pool = pool_of(workspace, name)
    for document, answer in answers.items():
        if document not in pool.get(query, {}):
            raise ConfigError(f"{document} is not in the pool of {query}.")
        if answer not in ANSWERS_OF:
            raise ConfigError(f"{answer!r} is no answer.", hint=f"There is: {', '.join(ANSWERS_OF)}.")
    grades = {document: ANSWERS_OF[answer] for document, answer in answers.items()}
    judged.add_labels(folder, query, grades, actions.person(by))


@access.writes
def answer(workspace: Workspace, name: str, by: str, shown: Task, word: str) -> None:
    """Store an answer about the first open document; ``NOTHING`` grades all open ones 0, ``UNDO`` takes back the last
    action."""
    if word == UNDO:
        undo(workspace, name, by)
    else:
        about = shown.open if word == NOTHING else shown.open[:1]
        label(workspace, name, shown.query, {p.id: "0" if word == NOTHING else word for p in about}, by)


@access.writes
def undo(workspace: Workspace, name: str, by: str) -> str:
    """Take back this person's last action; return its query, empty if there is none."""
    return judged.undo(pool_of(workspace, name)[0], actions.person(by))
