"""What one worker does of a part of a corpus, in a file that is its alone: requests, answers, lines and failures.

Several machines may not write one SQLite file, and what a dead one had paid for must not be lost. So each attempt at a
part appends to a journal of its own in the job's folder, one record per line, on disk before the next step; whoever
does the part again reads those that are there first. The worker of the job takes a part's journals over into
the query set and the answer cache when the part is done, and those that a killed attempt left at its start.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp.base.failures import Failures
from cdp.base.workspace import append_jsonl, read_jsonl
from cdp.synthesis.cache import Entry, row_of
from cdp.synthesis.generators.base import Answer, RequestError, Usage

FOLDER = "synthesis"
"""Below the job's ``checkpoints``."""

ASKED, SETTLED, LINE, FAILURE = "asked", "settled", "line", "failure"
AT_ONCE = 256
"""Records of answers that cost nothing, which are written together."""

_DONE = tuple(f'{{"{kind}":'.encode() for kind in (LINE, FAILURE))


def folder_of(job_folder: Path) -> Path:
    return job_folder / "checkpoints" / FOLDER


def journals(folder: Path, part: str = "") -> list[Path]:
    """Of one part, or all that are there."""
    return sorted(folder.glob(f"{part or '*'}.*.jsonl"))


class Journal:
    """Appends records to a file of its own in ``folder``. With ``sync``, each is on disk when its call returns."""

    def __init__(self, folder: Path, part: str, *, sync: bool) -> None:
        self.path = folder / f"{part}.{secrets.token_hex(4)}.jsonl"
        self._sync = sync
        self._lock = threading.Lock()
        self._waiting: list[dict[str, Any]] = []

    def add(self, kind: str, value: Any, **more: Any) -> None:
        with self._lock:
            self._waiting.append({kind: value, **more})
            if self._sync or len(self._waiting) >= AT_ONCE:
                self._write()

    def flush(self) -> None:
        with self._lock:
            self._write()

    def _write(self) -> None:
        append_jsonl(self.path, self._waiting, sync=self._sync)
        self._waiting = []


@dataclass
class Earlier:
    """What the journals of a part say that earlier attempts at it have done."""

    done: set[int] = field(default_factory=set)
    """Positions with a line or a failure."""

    answers: dict[str, Answer] = field(default_factory=dict)
    """By their keys, with what was paid for them: their documents have no line yet, or have failed."""

    spent: Usage = field(default_factory=Usage)
    any_success: bool = False

    @classmethod
    def of(cls, paths: list[Path]) -> Earlier:
        earlier = cls()
        for path in paths:
            for entry in entries(path):
                earlier.spent += entry.usage
                if entry.answer is not None:
                    earlier.answers[entry.key] = entry.answer
            for line, failure in outcomes(path):
                if line is not None or not (failure or {}).get("kept"):  # such a one has a line behind it, unless torn
                    earlier.done.add((line or failure or {})["position"])
                earlier.any_success |= line is not None
        return earlier


def entries(path: Path) -> Iterator[Entry]:
    """The requests of a journal: those that were settled, then those that were lost with whoever asked."""
    open_requests: dict[str, Usage] = {}
    for record in read_jsonl(path):
        if ASKED in record:
            read, written = record["usual"]
            open_requests[record[ASKED]] = Usage(read, written, estimated=1, unanswered=1)
        elif SETTLED in record:
            open_requests.pop(record[SETTLED], None)
            usage = Usage.from_dict(record["usage"])
            answer = Answer(**record["answer"], usage=usage) if record.get("answer") else None
            yield Entry(record[SETTLED], usage, answer)
    for key, usual in open_requests.items():
        yield Entry(key, usual, lost=True)


def outcomes(path: Path) -> Iterator[tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    """(line of the query set, line of its failures), one of the two, for each document of which it says what came."""
    for record in read_jsonl(path):
        if LINE in record or FAILURE in record:
            yield record.get(LINE), record.get(FAILURE)


class JournalBooks:
    """The answers and the books of one attempt at a part: ``cache.Answers`` and ``Books``. Safe between threads.

    ``known`` are answers that the job's worker found in its cache, which cost nothing; those of ``earlier`` attempts
    come with what was paid, for their document has no line that says so yet.
    """

    def __init__(self, journal: Journal, earlier: Earlier, known: Mapping[str, Answer]) -> None:
        self._journal = journal
        self._answers = {**known, **earlier.answers}
        self._spent = earlier.spent

    def get_or_ask(self, key: str, ask: Callable[[], Answer], *, keep: bool = True) -> Answer:
        """No two documents of a part ask the same, so nobody is waited for."""
        answer = self._answers.get(key)
        return ask() if answer is None else answer

    def begin(self, job: str, key: str, usual: Usage) -> None:
        self._journal.add(ASKED, key, usual=[usual.input_tokens, usual.output_tokens])

    def settle(self, job: str, key: str, usage: Usage, answer: Answer | None = None) -> None:
        row = None
        if answer is not None:
            try:
                row_of(answer)
            except RequestError:
                self.settle(job, key, usage)
                raise
            row = {name: getattr(answer, name) for name in ("text", "model", "finish_reason", "logprob")}
        self._journal.add(SETTLED, key, usage=usage.to_dict(), answer=row)

    def spent(self, job: str) -> Usage | None:
        return self._spent


class JournalledFailures(Failures):
    """Failures that go into a journal."""

    def __init__(self, journal: Journal, stage: str) -> None:
        super().__init__(None, stage)
        self._journal = journal

    def write(self, line: dict[str, Any], *, counts: bool = True) -> None:
        self._journal.add(FAILURE, line)


class Follower:
    """Counts the documents that journals tell of while they are written: only what is new is read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[Path, tuple[int, int]] = {}

    def look(self) -> int:
        """How many documents the journals that are there now have done."""
        found: dict[Path, tuple[int, int]] = {}
        for path in journals(self._folder):
            at, n = self._seen.get(path, (0, 0))
            with suppress(OSError), open(path, "rb") as file:
                file.seek(at)
                data = file.read()
                data = data[: data.rfind(b"\n") + 1]
                n += sum(line.startswith(_DONE) for line in data.splitlines())
                at += len(data)
            found[path] = at, n
        self._seen = found
        return sum(n for _, n in found.values())
