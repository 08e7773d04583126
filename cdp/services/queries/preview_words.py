"""What a preview says of an answer in words: what was wrong with it, and what the template generator cannot do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cdp.base.records import Document
from cdp.query_sets.nonsense import REASONS, nonsense
from cdp.synthesis.templates.phrases import is_english

_WORDS = {
    "too_few": ("{n} query fewer than asked for", "{n} queries fewer than asked for"),
    "duplicate": ("{n} query repeated another and was left out", "{n} queries repeated others and were left out"),
    "empty": ("{n} empty query", "{n} empty queries"),
    "over_long": ("{n} query too long to be one", "{n} queries too long to be one"),
    "stray_line": ("{n} line beside the list", "{n} lines beside the list"),
    "refusal": ("the model refused", "the model refused {n} times"),
    "broken_json": ("the JSON broke off; what could be read is kept",) * 2,
    "broken_text": ("{n} query held half a character", "{n} queries held half a character"),
    "no_question": ("the answer holds no question", "{n} answers hold no question"),
    "cut_off": ("the answer reached the token limit (max_output_tokens)",) * 2,
    "repaired": ("this is a second attempt",) * 2,
    "repair_failed": ("a second attempt was no better",) * 2,
}
"""For each problem of ``parsing.Parsed`` and ``generate``: the words for one and for several."""

TEMPLATE_KINDS = ("diverse", "paraphrase")
IGNORES_PROMPT = "The template generator reads no prompt: these are its diverse queries, whatever the method asks for."
NOT_ENGLISH = "Not read as English: these are words and sentences of the document itself, put in another order."
NO_WORDS = "The document holds no words to build a query from."
UNREADABLE = "No query could be read from the answer."


def problem(kind: str, n: int) -> str:
    """One counted problem, said."""
    words = _WORDS.get(kind)
    return words[n > 1].format(n=n) if words else f"{kind.replace('_', ' ')}: {n}"


def problems(counted: Mapping[str, int], *, queries: int, template: str, document: Document) -> list[str]:
    """All there is to say of one method's answer for ``document``: first that there is none, then what was wrong.

    ``template`` is the method that the template generator was asked for, empty for every other generator.
    """
    sentences = [problem(kind, n) for kind, n in counted.items()]
    if not queries:
        return [NO_WORDS if template else UNREADABLE, *(text for text in sentences if "fewer than" not in text)]
    if not template:
        return sentences
    limits = [IGNORES_PROMPT] if template not in TEMPLATE_KINDS else []
    return [*sentences, *limits, *([] if is_english(document.content) else [NOT_ENGLISH])]


def flagged(queries: Sequence[str], document: str, prompt: str) -> list[str]:
    """A sentence for each query that is none: ``query 2 is no query (refusal)``."""
    reasons = [nonsense(query, document, prompt=prompt) for query in queries]
    return [
        f"query {at} is no query ({', '.join(REASONS[name] for name in names)})"
        for at, names in enumerate(reasons, 1)
        if names
    ]
