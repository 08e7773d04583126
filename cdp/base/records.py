"""The records that flow between the rooms. Plain frozen data, no behaviour beyond what defines them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cdp.base.errors import WorkspaceError

T = TypeVar("T")


# What checks the values of a dataclass. To make one takes 3 ms, and a page reads the records of all that there is.
_ADAPTERS: dict[type, Any] = {}


def checked(kind: type[T], values: Mapping[str, Any], path: Path) -> T:
    """A dataclass made of what was read from ``path``; WorkspaceError where a field is missing or of another type."""
    from pydantic import TypeAdapter, ValidationError

    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    try:
        found: T = _ADAPTERS[kind].validate_python(values)
        return found
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise WorkspaceError(
            f"{path} does not hold what it should ({where}: {problem['msg']}).",
            hint="The file is damaged; make it anew.",
        ) from error


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a corpus. ``title`` may be empty."""

    id: str
    text: str
    title: str = ""

    @property
    def content(self) -> str:
        """What is encoded and shown to a generator: title, one space, text (the BEIR convention)."""
        return f"{self.title} {self.text}".strip() if self.title else self.text

    @property
    def content_hash(self) -> str:
        """16 hex digits of the SHA-256 of ``content``: equal for equal documents, whatever their ids."""
        return hashlib.sha256(self.content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Qrel:
    """One relevance judgment: graded, ``score`` 0 is judged not relevant."""

    query_id: str
    document_id: str
    score: int
