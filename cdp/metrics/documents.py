"""Queries as callers give them: of one document (a list of texts) or of several (a list of such lists)."""

from __future__ import annotations

from collections.abc import Sequence

from cdp.base.errors import InputError

Queries = Sequence[str] | Sequence[Sequence[str]]


def by_document(queries: Queries) -> list[Sequence[str]]:
    """The queries of each document; InputError if texts and lists are mixed or a bare text is given."""
    if isinstance(queries, str):
        raise InputError("One text was given where the queries of a document are expected.", hint="Put it into a list.")
    texts = [item for item in queries if isinstance(item, str)]
    documents = [item for item in queries if not isinstance(item, str)]
    if texts and documents:
        raise InputError(
            "Texts and lists of texts are mixed.", hint="Give the queries of one document, or one list per document."
        )
    return [texts] if texts else documents


def aligned(synthetic: Queries, human: Queries) -> list[tuple[Sequence[str], Sequence[str]]]:
    """Synthetic and human queries of the same documents; a document without queries on either side is left out.

    InputError if the two sides do not hold the same number of documents, or no document has queries on both.
    """
    left, right = by_document(synthetic), by_document(human)
    if len(left) != len(right):
        raise InputError(f"There are synthetic queries for {len(left)} documents and human ones for {len(right)}.")
    pairs = [(s, h) for s, h in zip(left, right, strict=True) if len(s) and len(h)]
    if not pairs:
        raise InputError("No document has both synthetic and human queries, so there is nothing to compare.")
    return pairs
