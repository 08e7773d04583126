"""Rows of documents: column names known, ids and texts refused, HTML in cells, a query field parsed, rejected rows."""

from __future__ import annotations

import ast
import html
import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from cdp.base.errors import InputError, offer, some, visible
from cdp.base.text import counted, encodable
from cdp.base.workspace import shipped_table
from cdp.corpus.options import (
    KEPT_REJECTIONS,
    MAX_DOCUMENT_CHARACTERS,
    MAX_ID_CHARACTERS,
    NO_FIELD,
    ROWS_FOR_FIELDS,
    ReadOptions,
)

EXCERPT_CHARACTERS = 120

# Kinds of rejections that are a whole file, or all of one behind a fault.
UNREADABLE, BROKEN_OFF = "unreadable file", "file broken off"


@dataclass(frozen=True, slots=True)
class Rejected:
    """One row (or, with ``line`` None, one whole file) that was not taken, and why.

    ``line`` counts from 1: the physical line where the row begins, the row of a Parquet file, or the page. ``kind`` is
    one of a few fixed phrases by which rejections are counted; ``reason`` is the sentence for the user.
    """

    file: str
    line: int | None
    kind: str
    reason: str
    excerpt: str = ""

    @property
    def where(self) -> str:
        """``a.csv, line 3``, ``a.pdf, page 3``, or the file."""
        if self.line is None:
            return self.file
        part = "page" if self.file.lower().endswith((".pdf", ".pptx", ".xlsx")) else "line"
        return f"{self.file}, {part} {self.line}"

    @property
    def whole_file(self) -> bool:
        return self.line is None or self.kind in (UNREADABLE, BROKEN_OFF)


class RefusedValueError(Exception):
    """Raised where a single value of a row cannot be used; caught where the row is, never shown as such."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


def beginning(text: str, longest: int) -> str:
    """A text that UTF-8 can hold, or of a longer one the beginning with an ellipsis."""
    text = encodable(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def excerpt(text: object) -> str:
    """The first 120 characters of a row, on one line and safe to store as UTF-8."""
    line = " ".join(str(text)[: EXCERPT_CHARACTERS * 2].split())
    return beginning(visible(line), EXCERPT_CHARACTERS)


class Rejections:
    """Collects rejected rows of one import."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._kept: list[Rejected] = []
        self._files: dict[str, int] = {}

    def add(self, rejected: Rejected) -> None:
        self.counts[rejected.kind] += 1
        if not self.full:
            self._files.setdefault(rejected.file, len(self._files))
            self._kept.append(rejected)

    @property
    def full(self) -> bool:
        """Return True if further rejections are only counted."""
        return len(self._kept) >= KEPT_REJECTIONS

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def kept(self) -> list[Rejected]:
        """Those kept, in the order of files and lines."""
        return sorted(self._kept, key=lambda r: (self._files[r.file], r.line or 0))

    def summary(self) -> str:
        """``3 rows were rejected (2 broken JSON, 1 empty text)``, or an empty text."""
        if not self.counts:
            return ""
        parts = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.most_common())
        files = all(rejected.whole_file for rejected in self._kept)
        were = "was" if self.total == 1 else "were"
        return f"{counted(self.total, 'file' if files else 'row')} {were} rejected ({parts})"


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# Texts or objects in a list as NumPy writes it, and a list of whole numbers.
_WITHOUT_COMMA = re.compile(r"""['"]\s+['"]|\}\s+\{""")
_NUMBERS = re.compile(r"\[\s*\d+(?:\s*,\s*\d+)*\s*\]")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")

_TYPE_NAMES = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}


def type_name(value: Any) -> str:
    """What a value is, in the user's words."""
    return "null" if value is None else _TYPE_NAMES.get(type(value), f"of type {type(value).__name__}")


def cell_of(value: Any) -> Any:
    """Return a table's cell; one that holds a list, as JSON or Python writes it, as that list.

    ValueError for a list as NumPy writes it.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    listed = text.startswith(("['", '["', "[{")) and text.endswith("]")
    if not listed and not _NUMBERS.fullmatch(text):
        return text

    with suppress(ValueError, RecursionError):
        return json.loads(text)
    # Python would join these texts to one.
    if _WITHOUT_COMMA.search(text):
        raise ValueError("a list has no commas, as NumPy writes it: save the table as JSON Lines or Parquet")
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        return ast.literal_eval(text)

    return text


def ids_in(value: Any) -> list[str]:
    """Return the ids that a table's cell holds: those of a list, also one as JSON or as Python writes it, else the one.

    ValueError as ``cell_of``.
    """
    held = cell_of(value)
    return [str(one) for one in (held if isinstance(held, list) else [held])]


def checked_id(value: Any, field: str) -> str:
    """A text, a whole number (also as 1.0) or a UUID as an id; RefusedValueError otherwise.

    Tabs and line breaks would break qrels files.
    """
    if type(value) is int or isinstance(value, UUID):
        return str(value)
    # A remainder of more digits than the context's 28 is an error of decimals.
    whole = value.is_integer() if isinstance(value, float) else isinstance(value, Decimal) and value == round(value)
    if whole:
        return str(int(value))
    if value is None or value != value or (isinstance(value, str) and not value.strip()):
        raise RefusedValueError("no id", f"the field {field!r} is empty")
    if not isinstance(value, str):
        raise RefusedValueError("unusable id", f"the id must be text or a whole number, but it is {type_name(value)}")
    if len(value) > MAX_ID_CHARACTERS:
        raise RefusedValueError("unusable id", f"the id is longer than {MAX_ID_CHARACTERS} characters")
    if CONTROL.search(value):
        raise RefusedValueError("unusable id", "the id contains a tab, a line break or a control character")
    return value


def id_in(value: Any) -> str:
    """Return a value as an id, as ``checked_id``; empty for what is none."""
    with suppress(RefusedValueError):
        return "" if value is None else checked_id(value, "")

    return ""


def number_in(value: Any) -> float | None:
    """Return a number as a float; None for anything else, NaN, infinity, and what is larger than a float."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        return None
    return float(value)


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
    if value is None or value != value:  # NaN stands for nothing
        return ""
    if type(value) in (int, float, Decimal):
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


# A tag of HTML as editors write it into tables; ``a < b`` and ``List<int>`` are none.
_TAG = re.compile(
    r"</?(?:a|abbr|article|b|blockquote|br|code|dd|div|dl|dt|em|figure|font|h[1-6]|hr|i|img|li|ol|p|pre|section|small|span|"
    r"strong|sub|sup|table|tbody|td|th|thead|tr|u|ul)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_BLOCK = re.compile(
    r"</(?:p|div|li|tr|h[1-6]|dd|dt|blockquote|section|article|table)>|<br\s*/?>|<hr\s*/?>", re.IGNORECASE
)
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
# A column whose first rows hold tags to this share is HTML.
HTML_SHARE = 0.2


def html_columns(names: Iterable[str], rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """The columns that are HTML: in a fifth of the cells of the first rows there are closing tags or line breaks."""
    return {name for name in names if _is_html([row.get(name) for row in rows[:ROWS_FOR_FIELDS]])}


def _is_html(values: Sequence[Any]) -> bool:
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    tagged = sum("<" in text and bool(_TAG.search(text)) and ("</" in text or "<br" in text.lower()) for text in texts)
    return bool(texts) and tagged >= HTML_SHARE * len(texts)


def without_tags(text: str) -> str:
    """The text of a cell of HTML: paragraphs and items as lines, entities as characters."""
    if "<" in text:
        text = _TAG.sub("", _BLOCK.sub("\n", _UNSEEN.sub("", text)))
    lines = (" ".join(line.split()) for line in html.unescape(text).split("\n"))
    return "\n".join(line for line in lines if line)


def queries_of(value: Any) -> tuple[list[str], int, int]:
    """The queries in a ``queries`` or ``query`` field; how many of its entries were no usable text, how many repaired.

    Understood: a text, a list of texts, a list of objects with ``text`` or ``query``, and (for table cells) a text
    that is a JSON list.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return [], 0, 0

    entries = value if isinstance(value, list) else [value]
    queries: list[str] = []
    n_repaired = 0
    for entry in entries:
        text = entry.get("text", entry.get("query")) if isinstance(entry, dict) else entry
        if isinstance(text, str) and text.strip():
            query, repaired = storable(text)
            queries.append(query)
            n_repaired += repaired

    return queries, len(entries) - len(queries), n_repaired


# The names of columns by what they hold, in many languages; the first that is there is taken.
_NAMED = shipped_table("words/columns")
GUESSES = {
    role: tuple(name for names in by_language.values() for name in names) for role, by_language in _NAMED.items()
}
# Beside the text only what is surely meant so: a column of questions may be the title of an answer.
GUESSES["queries"] = ("queries", "query")


_SPACES = re.compile(r"[\s_]")


def columns_named(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The columns called one of ``wanted``, in that order, but for case, spaces, underscores, and a dot or colon at the
    end."""
    plain = {unicodedata.normalize("NFC", name).strip().lower().rstrip(".:"): name for name in reversed(names)}
    joined = {_SPACES.sub("", name): plain[name] for name in plain}
    found = (plain.get(name) or joined.get(_SPACES.sub("", name)) for name in wanted)
    return list(dict.fromkeys(filter(None, found)))


def column_named(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first of ``columns_named``."""
    return next(iter(columns_named(names, wanted)), None)


@dataclass(frozen=True)
class FieldMap:
    """Field names as they stand in the file. Without ``id`` the documents are numbered."""

    text: str
    id: str | None = None
    title: str | None = None
    queries: str | None = None
    grade: str | None = None


LOOKED_THROUGH = 1_000
# Among so many fields a misspelt one is looked for; so many characters of a name stand in a message.
LONGEST_SHOWN = 60


def listed(names: Sequence[str]) -> str:
    """The first twenty names in quotes, long ones cut."""
    return some([repr(beginning(name, LONGEST_SHOWN)) for name in names])


def not_taken(columns: Sequence[str]) -> str:
    """``Columns that were not taken: a, b.``, of many the first ten; empty where there are none."""
    names = [beginning(name, LONGEST_SHOWN) for name in columns]
    return f"Columns that were not taken: {some(names, 10)}." if columns else ""


def _field_of(role: str, names: Sequence[str], options: ReadOptions, file: str) -> str | None:
    """The field that was chosen for a role, else guessed; None where there is none. InputError for an unknown one."""
    option = getattr(options, f"{role}_field")
    if option is None:
        return None if role in ("query", "grade") else column_named(names, GUESSES[role])
    if option in names:
        return str(option)
    if option == NO_FIELD and role in ("id", "title"):
        return None

    known = [name for name in names[:LOOKED_THROUGH] if len(name) <= LONGEST_SHOWN]
    problem = f"There is no field {option!r}; the fields found are {listed(names) or 'none'}."
    raise InputError(problem, hint=offer(option, known, instead="Choose one of them."), file=file)


def resolve_fields(names: Sequence[str], options: ReadOptions, file: str) -> FieldMap:
    """The user's choice, else the first guess that is there (upper and lower case alike).

    InputError if a chosen field is not there, or if no field can be the text.
    """
    chosen = {role: _field_of(role, names, options, file) for role in ("id", "title", "text", "query", "grade")}
    text, queries, grade = (chosen[role] for role in ("text", "query", "grade"))
    if text is None:
        hint = "Choose the column with the text, and likewise those with the id and the title."
        if file.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".tab")):
            hint += " Or say that the file has no header row."
        elif file.lower().removesuffix(".gz").endswith(".json"):
            hint += " Of a list within an object write one document per line: jq -c '.data[]' in.json > out.jsonl"
        problem = f"None of the fields found ({listed(names) or 'none'}) is known to hold the text of a document."
        raise InputError(problem, hint=hint, file=file)

    others = [name for name in names if name not in chosen.values()]
    queries = queries or column_named(others, GUESSES["queries"])
    if queries and not grade:
        grade = column_named([name for name in others if name != queries], GUESSES["grade"])

    return FieldMap(text, chosen["id"], chosen["title"], queries, grade)
