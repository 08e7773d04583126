"""Reading records with typed fields, each damaged one with its place; ``Document``, ``Qrel``, a passage's page."""

from __future__ import annotations

import hashlib
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypeVar

from annotated_types import Ge, Lt, Predicate
from typing_extensions import TypedDict

from cdp.base.errors import WorkspaceError
from cdp.base.workspace import DAMAGED, RECORDS, numbered_jsonl, read_json

T = TypeVar("T")
# Fields of records: a number of things or a place among them, and a number that is neither infinite nor NaN. Pydantic
# reads these marks; it is imported with the first record alone, for a supervisor reads none.
Count = Annotated[int, Ge(0), Lt(2**53)]
Real = Annotated[float, Predicate(math.isfinite)]

_log = logging.getLogger(__name__)

# Building a validator takes 3 ms, and a page reads hundreds of records.
_ADAPTERS: dict[type, Any] = {}


def fields(required: Mapping[str, Any] | None = None, /, **optional: Any) -> Any:
    """Return the type of a mapping with these fields, of which the ``optional`` ones may be missing."""
    maybe = {name: NotRequired[kind] for name, kind in optional.items()}
    make: Any = TypedDict
    return make("Fields", {**(required or {}), **maybe})


def checked(kind: type[T], values: Any, path: Path, line: int = 0) -> T:
    """Return a dataclass of the values read from ``path``; for ``fields`` the values, with all else that they hold.
    WorkspaceError for a missing or wrong field."""
    from pydantic import TypeAdapter, ValidationError

    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    try:
        found: T = _ADAPTERS[kind].validate_python(values, strict=not is_dataclass(kind))
        return values if isinstance(found, dict) else found
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, problem["loc"])) or "all of it"
        place = f"{path}, line {line}," if line else path
        raise WorkspaceError(f"{place} has a wrong field ({where}: {problem['msg']}).", hint=DAMAGED) from error


def whole(kind: type[T], path: Path) -> T | None:
    """Return the record in ``path`` as ``checked`` does; None where there is none, and for a damaged one, which a
    warning names."""
    if not path.exists():
        return None
    try:
        return checked(kind, read_json(path), path)
    except WorkspaceError as error:
        _log.warning("%s", error)
        return None


def kept(kind: type[T], path: Path) -> T:
    """Return the record in ``path`` as ``checked`` does, read again once the file has changed."""
    return RECORDS.get(path, kind.__name__, lambda: checked(kind, read_json(path), path))


def newest_first(kind: type[T], paths: Iterable[Path]) -> list[T]:
    """Return the records in these files by their ``created`` and ``id``; a warning names a damaged one."""
    found: list[Any] = []
    for path in paths:
        try:
            found.append(kept(kind, path))
        except WorkspaceError as error:
            _log.warning("%s", error)

    return sorted(found, key=lambda record: (record.created, record.id), reverse=True)


def lines(kind: type[T], path: Path, problems: list[str] | None = None) -> Iterator[T]:
    """Yield what each line of ``path`` holds, as ``checked`` does.

    A line with missing or wrong fields costs none of its neighbours: it is added to ``problems`` with its place, and
    without that list a warning names the first and counts them.
    """
    found = [] if problems is None else problems
    known = len(found)
    for number, record in numbered_jsonl(path):
        try:
            item = checked(kind, record, path, number)
        except WorkspaceError as error:
            found.append(error.message)
            continue
        yield item
    if problems is None and len(found) > known:
        _log.warning("%s (%d such lines)", found[0], len(found))


# What other rooms than ``jobs`` read of a job's ``spec.json``.
JOB_FACTS = fields(
    kind=str, name=str, created=str, config=fields(generator=str, retriever=str),
    inputs=fields(estimate=fields(cost=Real | None) | None, recorded=bool),
)  # fmt: skip
# ``results/training.json``, as far as it is read.
TRAINING = fields(
    {"retriever": str, "query_set": str}, pairs=Count, documents=Count, steps=Count, settings=dict[str, Any],
    model_hash=str, notes=list[str], pairs_per_second=Real | None, best_step=Count | None, seconds=Real,
)  # fmt: skip


# The id of a passage: its file, the page on which it begins where the format has pages, and its number in the file.
PASSAGE_ID = re.compile(r"(?P<file>.+)#(?:p(?P<page>\d+)(?:\.\.(?P<last>\d+))?-)?(?P<number>\d+)", re.DOTALL)


def place_of(id: str) -> tuple[str, str]:
    """(file, "page 3" or "pages 3–4") of a passage's id, "" where the format has no pages; any other id and ""."""
    match = PASSAGE_ID.fullmatch(id)
    if not match:
        return id, ""

    on = pages_of(id)
    pages = f"pages {on[0]:,}–{on[-1]:,}" if len(on) > 1 else f"page {on[0]:,}" if on else ""
    return match["file"], pages


def pages_of(id: str) -> range:
    """The pages of a passage by its id; none where the format has no pages."""
    match = PASSAGE_ID.fullmatch(id)
    first = int(match["page"] or 0) if match else 0
    return range(first, int((match and match["last"]) or first) + 1) if first else range(0)


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
