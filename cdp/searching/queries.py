"""What can be searched for: a query that is not empty and not longer than anybody reads."""

from __future__ import annotations

from cdp.base.errors import InputError

LONGEST_QUERY = 10_000
"""Characters. Encoders cut a text at some hundred tokens anyway."""

DEFAULT_K, MOST_K = 10, 100
"""Documents that are shown."""


def checked_query(query: str) -> str:
    """The query as it is searched for. InputError for one that is empty or longer than anybody reads."""
    # Half of a surrogate pair is no character: no tokenizer takes it.
    text = query.encode("utf-8", "replace").decode().replace("\0", " ").strip()
    if not text:
        raise InputError("The query is empty.", hint="Type a few words or a question.")
    if len(text) > LONGEST_QUERY:
        raise InputError(
            f"The query has {len(text):,} characters; at most {LONGEST_QUERY:,} are searched for.",
            hint="Shorten it: an encoder reads some hundred words.",
        )
    return text
