"""From the values in a row to the id, title, text and queries of a document, or the reason why not."""

from __future__ import annotations

import json
import re
from typing import Any

from cdp.corpus.options import MAX_DOCUMENT_CHARACTERS, MAX_ID_CHARACTERS
from cdp.corpus.rejections import RefusedValueError

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")

_TYPE_NAMES = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}


def type_name(value: Any) -> str:
    """What a value is, in the user's words."""
    return "null" if value is None else _TYPE_NAMES.get(type(value), f"of type {type(value).__name__}")


def checked_id(value: Any, field: str) -> str:
    """A text or a whole number as an id; RefusedValueError otherwise. Tabs and line breaks would break qrels files."""
    if type(value) is int:
        return str(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise RefusedValueError("no id", f"the field {field!r} is empty")
    if not isinstance(value, str):
        raise RefusedValueError("unusable id", f"the id must be text or a whole number, but it is {type_name(value)}")
    if len(value) > MAX_ID_CHARACTERS:
        raise RefusedValueError("unusable id", f"the id is longer than {MAX_ID_CHARACTERS} characters")
    if _CONTROL.search(value):
        raise RefusedValueError("unusable id", "the id contains a tab, a line break or a control character")
    return value


def ids_are_usable(ids: list[Any]) -> bool:
    """Whether ``checked_id`` takes every one of these as it is, told of all together."""
    return (
        None not in ids
        and all(map(str.strip, ids))
        and max(map(len, ids), default=0) <= MAX_ID_CHARACTERS
        and not _CONTROL.search("".join(ids))
    )


def texts_are_usable(texts: list[Any]) -> bool:
    """Whether ``checked_text`` takes every one of these."""
    return (
        None not in texts
        and all(texts)
        and not any(map(str.isspace, texts))
        and max(map(len, texts), default=0) <= MAX_DOCUMENT_CHARACTERS
    )


def checked_text(value: Any, field: str) -> str:
    """The text of a document, not blank; RefusedValueError otherwise."""
    if value is None:
        raise RefusedValueError("empty text", f"the field {field!r} is missing or null")
    if not isinstance(value, str):
        raise RefusedValueError("text is not text", f"the field {field!r} is {type_name(value)}, not text")
    if not value or value.isspace():
        raise RefusedValueError("empty text", f"the field {field!r} is empty")
    if len(value) > MAX_DOCUMENT_CHARACTERS:
        raise RefusedValueError(
            "too long",
            f"the text has {len(value):,} characters, more than {MAX_DOCUMENT_CHARACTERS:,}; split the document",
        )
    return value


def checked_title(value: Any, field: str) -> str:
    """The title; empty for null, a number as its digits; RefusedValueError for anything else than text."""
    if value is None:
        return ""
    if type(value) in (int, float):
        return str(value)
    if not isinstance(value, str):
        raise RefusedValueError("title is not text", f"the field {field!r} is {type_name(value)}, not text")
    return value


def storable(text: str) -> tuple[str, bool]:
    """``text`` and False; or, with NUL characters and lone surrogates replaced by U+FFFD, and True."""
    if "\0" not in text:
        if text.isascii():
            return text, False
        try:
            text.encode("utf-8")
            return text, False
        except UnicodeEncodeError:
            pass
    return _UNSTORABLE.sub("\ufffd", text), True


def queries_of(value: Any) -> tuple[list[str], int, int]:
    """The queries in a ``queries`` or ``query`` field; how many of its entries were no usable text, how many repaired.

    Understood: a text, a list of texts, a list of objects with ``text`` or ``query``, and (for table cells) a text
    that is a JSON list.
    """
    if value is None:
        return [], 0, 0
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                value = [value]
        else:
            value = [value] if value.strip() else []
    if not isinstance(value, list):
        return [], 1, 0
    queries: list[str] = []
    unusable = repaired = 0
    for entry in value:
        if isinstance(entry, dict):
            entry = entry.get("text", entry.get("query"))
        if isinstance(entry, str) and entry.strip():
            text, changed = storable(entry)
            queries.append(text)
            repaired += changed
        else:
            unusable += 1
    return queries, unusable, repaired
