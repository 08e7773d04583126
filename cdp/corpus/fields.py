"""Which field of a row is the id, the title, the text, and the queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdp.base.errors import InputError, offer
from cdp.corpus.options import NO_FIELD, ReadOptions

GUESSES = {
    "id": ("_id", "id", "doc_id", "docid", "pid"),
    "title": ("title",),
    "text": ("text", "contents", "content", "passage", "body", "document"),
    "queries": ("queries", "query"),
}


@dataclass(frozen=True)
class FieldMap:
    """Field names as they stand in the file. Without ``id`` the documents are numbered."""

    text: str
    id: str | None = None
    title: str | None = None
    queries: str | None = None


LOOKED_THROUGH = 1_000
LONGEST_SHOWN = 60
"""Among so many fields a misspelt one is looked for; so many characters of a name stand in a message."""


def listed(names: Sequence[str]) -> str:
    """The first twenty names in quotes, long ones cut."""
    shown = [repr(name if len(name) <= LONGEST_SHOWN else f"{name[: LONGEST_SHOWN - 1]}…") for name in names[:20]]
    return ", ".join(shown) + (", …" if len(names) > 20 else "")


def resolve_fields(names: Sequence[str], options: ReadOptions, file: str) -> FieldMap:
    """The user's choice, else the first guess that is there (upper and lower case alike).

    InputError if a chosen field is not there, or if no field can be the text.
    """
    present = set(names)
    chosen: dict[str, str | None] = {}
    for role, option in (
        ("id", options.id_field),
        ("title", options.title_field),
        ("text", options.text_field),
        ("query", options.query_field),
    ):
        if option is None:
            chosen[role] = None if role == "query" else _guess(role, names)
        elif option in present:
            chosen[role] = option
        elif option == NO_FIELD and role in ("id", "title"):
            chosen[role] = None
        else:
            raise InputError(
                f"There is no field {option!r}; the fields found are {listed(names) or 'none'}.",
                hint=offer(
                    option,
                    [name for name in names[:LOOKED_THROUGH] if len(name) <= LONGEST_SHOWN],
                    instead=f"Set {role}_field to one of them.",
                ),
                file=file,
            )
    text = chosen["text"]
    if text is None:
        hint = "Say which one does with text_field, and likewise id_field and title_field."
        if file.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".tab")):
            hint += " If the file has no header row, set header to no."
        problem = f"None of the fields found ({listed(names) or 'none'}) is known to hold the text of a document."
        raise InputError(problem, hint=hint, file=file)
    assigned = {name for name in chosen.values() if name is not None}
    queries = chosen["query"] or _guess("queries", [name for name in names if name not in assigned])
    return FieldMap(text=text, id=chosen["id"], title=chosen["title"], queries=queries)


def _guess(role: str, names: Sequence[str]) -> str | None:
    lowered = {name.strip().lower(): name for name in reversed(names)}
    return next((lowered[guess] for guess in GUESSES[role] if guess in lowered), None)


def headerless_fields(n_columns: int) -> dict[str, str]:
    """Roles of the columns ``1 … n`` of a table without a header; empty where they cannot be told."""
    roles = {1: ("text",), 2: ("id", "text"), 3: ("id", "title", "text")}.get(n_columns, ())
    return {role: str(i) for i, role in enumerate(roles, start=1)}
