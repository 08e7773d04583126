"""Documents and judgments, the records that all packages share, and the validation of records read from files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cdp.base.errors import WorkspaceError
from cdp.base.workspace import DAMAGED

T = TypeVar("T")

# Building a validator takes 3 ms, and a page reads hundreds of records.
_ADAPTERS: dict[type, Any] = {}


def checked(kind: type[T], values: Mapping[str, Any], path: Path) -> T:
    """Return a dataclass of the values read from ``path``; WorkspaceError for a missing or wrong field."""
    from pydantic import TypeAdapter, ValidationError

    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    try:
        found: T = _ADAPTERS[kind].validate_python(values)
        return found
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise WorkspaceError(f"{path} has a wrong field ({where}: {problem['msg']}).", hint=DAMAGED) from error


# The id of a passage: its file, the page on which it begins where the format has pages, and its number in the file.
PASSAGE_ID = re.compile(r"(?P<file>.+)#(?:p(?P<page>\d+)-)?(?P<number>\d+)", re.DOTALL)


def place_of(id: str) -> tuple[str, int]:
    """(file, page) of a passage's id, 0 where the format has no pages; any other id and 0."""
    match = PASSAGE_ID.fullmatch(id)
    return (match["file"], int(match["page"] or 0)) if match else (id, 0)


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a corpus. ``title`` may be empty."""

    id: str
    text: str
    title: str = ""

    @property
    def content(self) -> str:
        """Title, one space, text (the BEIR convention): the text that is encoded and sent to generators."""
        return f"{self.title} {self.text}".strip() if self.title else self.text

    @property
    def content_hash(self) -> str:
        """16 hex digits of the SHA-256 of ``content``, independent of the id."""
        return hashlib.sha256(self.content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Qrel:
    """One relevance judgment: graded, ``score`` 0 is judged not relevant."""

    query_id: str
    document_id: str
    score: int
