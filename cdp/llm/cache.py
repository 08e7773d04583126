"""Answers that were paid for, kept in ``llm_cache/answers.sqlite`` so that they are never paid for twice.

An answer is addressed by the document's content, the rendered prompt, the model and the parameters. SQLite holds one
small row per answer: each is on disk before the next is asked for, a killed process loses none that had arrived, and a
million answers need no memory and no million files.

On one machine it keeps a write-ahead log. That needs memory which all readers and writers share, so once a cluster's
node has opened the cache, every process uses SQLite's rollback journal instead, which needs file locks alone.

Beside the answers stand the books of each job: what is asked is written down before it is sent, and taken out together
with the answer being kept and its cost being added up, in one transaction. What a killed process leaves there was on
its way: the endpoint may charge for it, and nobody has the answer.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cdp.base.errors import WorkspaceError
from cdp.base.worker import on_a_node
from cdp.base.workspace import Workspace, now, sha256_text
from cdp.llm.answers import Answer, Cancelled, RequestError, Usage
from cdp.llm.prices import Price

BUSY_TIMEOUT_S = 30.0

_TABLES = (
    "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, created TEXT, answer TEXT) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS asked (job TEXT, key TEXT, input_tokens INTEGER, output_tokens INTEGER,"
    " PRIMARY KEY (job, key)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS paid (job TEXT PRIMARY KEY, input_tokens INTEGER, output_tokens INTEGER,"
    " requests INTEGER, estimated INTEGER, unanswered INTEGER) WITHOUT ROWID",
)
_COUNTS = ("input_tokens", "output_tokens", "requests", "estimated", "unanswered")


def cache_key(content_hash: str, prompt: str, model: str, parameters: Mapping[str, object]) -> str:
    """The address of an answer: 64 hex digits."""
    return sha256_text(content_hash, sha256_text(prompt), model, json.dumps(parameters, sort_keys=True, default=str))


class AnswerCache:
    """Safe to share between the threads of a run and between processes."""

    def __init__(self, workspace: Workspace) -> None:
        self.path: Path = workspace.llm_cache / "answers.sqlite"
        self.healed = 0
        """Rows that were no answer and were taken out, so that they are asked for anew."""
        self._lock = threading.Lock()
        self._in_flight: dict[str, threading.Event] = {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=BUSY_TIMEOUT_S, check_same_thread=False, isolation_level=None
            )
            if on_a_node():
                self._several_machines.touch()
            if self._several_machines.exists():
                self._without_shared_memory()
            else:
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=NORMAL")
            for table in _TABLES:
                self._connection.execute(table)
        except (OSError, sqlite3.Error) as error:
            raise WorkspaceError(
                f"The answer cache {self.path} cannot be opened: {error}.",
                hint="Is the disk full or read-only? A damaged file can be moved away: its answers are paid for again.",
            ) from error

    @property
    def _several_machines(self) -> Path:
        """A file that is there once several machines have used the cache."""
        return self.path.with_name("several-machines")

    def _without_shared_memory(self) -> None:
        """Use the rollback journal. WorkspaceError on a node while a process elsewhere goes on with the log, which it
        opened before a node had come; on that process's machine the log is still right."""
        try:
            [mode] = self._connection.execute("PRAGMA journal_mode=DELETE").fetchone()
        except sqlite3.OperationalError:  # locked
            mode = "wal"
        if mode == "wal" and on_a_node():
            self._connection.close()
            raise WorkspaceError(
                "A job on another machine uses the answers that were paid for in a way that machines cannot share.",
                hint="Resume this job when that one has ended.",
            )

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return int(self._read("SELECT count(*) FROM answers")[0][0])

    def get(self, key: str) -> Answer | None:
        """The kept answer, with nothing paid for it (its usage is zero). A row that is no answer is taken out."""
        rows = self._read("SELECT answer FROM answers WHERE key = ?", key)
        answer = _answer_in(rows[0][0]) if rows else None
        if rows and answer is None:
            with self._transaction() as database:
                database.execute("DELETE FROM answers WHERE key = ?", (key,))
                self.healed += 1
        return answer

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer. RequestError for one that could not be read again."""
        value = row_of(answer)
        with self._transaction() as database:
            database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key, now(), value))

    def get_or_ask(self, key: str, ask: Callable[[], Answer], *, keep: bool = True) -> Answer:
        """The kept answer, or what ``ask`` gives; two threads with the same key ask once.

        Without ``keep``, ``ask`` has kept its answer itself.
        """
        while True:
            with self._lock:
                other = self._in_flight.get(key)
                if other is None:
                    self._in_flight[key] = mine = threading.Event()
            if other is not None:
                other.wait()
                continue
            try:
                answer = self.get(key)
                if answer is None:
                    answer = ask()
                    if keep:
                        self.put(key, answer)
                return answer
            finally:
                with self._lock:
                    del self._in_flight[key]
                mine.set()

    def begin(self, job: str, key: str, usual: Usage) -> None:
        """Write down that ``job`` is about to ask for ``key``, and what such a request usually consumes."""
        with self._transaction() as database:
            row = (job, key, usual.input_tokens, usual.output_tokens)
            database.execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?, ?)", row)

    def settle(self, job: str, key: str, usage: Usage, answer: Answer | None = None) -> None:
        """Close what ``begin`` opened: what it cost, and the answer where there is one, in one transaction.

        RequestError for an answer that could not be read again; what it cost is in the books all the same.
        """
        if answer is not None:
            try:
                row_of(answer)
            except RequestError:
                self.settle(job, key, usage)
                raise
        value = None if answer is None else row_of(answer)
        with self._transaction() as database:
            database.execute("DELETE FROM asked WHERE job = ? AND key = ?", (job, key))
            if value is not None:
                database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key, now(), value))
            _add(database, job, usage)

    def spent(self, job: str) -> Usage:
        """Return what all attempts of ``job`` have consumed."""
        rows = self._read(f"SELECT {', '.join(_COUNTS)} FROM paid WHERE job = ?", job)
        return Usage(*rows[0]) if rows else Usage()

    def take_lost(self, job: str, *, charged: bool) -> int:
        """How many requests an earlier attempt of ``job`` had on their way when it was killed; they are now settled.

        Where the endpoint may have ``charged`` for them, they count as unanswered from now on.
        """
        with self._transaction() as database:
            rows = database.execute("SELECT input_tokens, output_tokens FROM asked WHERE job = ?", (job,)).fetchall()
            database.execute("DELETE FROM asked WHERE job = ?", (job,))
            if charged:
                for read, written in rows:
                    _add(database, job, Usage(read, written, estimated=1, unanswered=1))
        return len(rows)

    def _read(self, question: str, *values: str) -> list[tuple[Any, ...]]:
        with self._mapped(), self._lock:
            return self._connection.execute(question, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, also between processes."""
        with self._mapped(), self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        """SQLite's errors as one that says what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise WorkspaceError(
                f"The answer cache {self.path} cannot be used: {error}.", hint="Is the disk full or read-only?"
            ) from error


def _add(database: sqlite3.Connection, job: str, usage: Usage) -> None:
    counts = [getattr(usage, name) for name in _COUNTS]
    sums = ", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTS)
    database.execute(
        f"INSERT INTO paid VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (job) DO UPDATE SET {sums}", (job, *counts)
    )


def row_of(answer: Answer) -> str:
    """The answer as it is kept; RequestError for one that could not be read again."""
    record: dict[str, object] = {"text": answer.text, "model": answer.model, "finish_reason": answer.finish_reason}
    if answer.logprob is not None:
        record["logprob"] = answer.logprob
    value = json.dumps({**record, "usage": answer.usage.to_dict()}, ensure_ascii=False)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError(
            "The answer cannot be kept: it holds half a character (a lone surrogate).", exhausted=True
        ) from None
    return value


def _answer_in(value: object) -> Answer | None:
    """The answer in a row; None for what is none: torn JSON, something that is no text, half a character."""
    try:
        record = json.loads(str(value))
        texts = [record[name] for name in ("text", "model", "finish_reason")]
        for text in texts:
            text.encode("utf-8")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    logprob = record.get("logprob")
    mean_logprob = float(logprob) if isinstance(logprob, int | float) else None
    return Answer(text=texts[0], model=texts[1], finish_reason=texts[2], usage=Usage(), logprob=mean_logprob)


class OverBudget(Cancelled):
    """What is left of the budget does not pay for another request."""


class Account:
    """What a job has spent, over all its attempts, and what is on its way. Safe to share between threads.

    With a budget, the largest price that a request can have is set aside before it is sent, so that what is queued
    cannot overshoot. Where that no longer fits, requests go one at a time as long as the price of a usual one fits:
    the last of them may cost more than what was left, and nothing else can.
    """

    def __init__(
        self, cache: AnswerCache, job: str, *, price: Price | None = None, budget: float | None = None
    ) -> None:
        self.spent = cache.spent(job)
        self.used_up = False
        self._cache = cache
        self._job = job
        self._price = price
        self.budget = budget
        self._reserved: list[float] = []
        self._closed = False
        self._change = threading.Condition()

    @property
    def cost(self) -> float | None:
        """US dollars; None where the model has no price."""
        return self._price.cost(self.spent) if self._price else None

    def ask(self, key: str, usual: Usage, most: Usage, send: Callable[[], Answer]) -> Answer:
        """The answer of ``send``, kept in the cache at ``key``; raises OverBudget, and what ``send`` raises.

        ``usual`` is what such a request consumes as a rule, ``most`` what it consumes at the most.
        """
        amount = self._reserve(usual, most)
        usage, answer = Usage(), None
        try:
            self._cache.begin(self._job, key, usual)
            try:
                answer = send()
                usage = answer.usage
            except (RequestError, Cancelled) as error:
                usage = error.usage
                raise
            finally:
                self._cache.settle(self._job, key, usage, answer)
            return answer
        finally:
            with self._change:
                self.spent += usage
                self._reserved.remove(amount)
                self._change.notify_all()

    def close(self) -> None:
        """Nobody waits for the budget any longer."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def _reserve(self, usual: Usage, most: Usage) -> float:
        """Set aside the price of a request, waiting for those on their way where it does not fit; US dollars."""
        with self._change:
            while self._price is not None and self.budget is not None:
                if self._closed:
                    raise Cancelled
                left = self.budget - self._price.cost(self.spent) - math.fsum(self._reserved)
                expected = max(self._price.cost(usual), self._mean_price())
                amount = self._price.cost(most)
                if amount <= left or (not self._reserved and expected <= left):
                    break
                if not self._reserved:
                    self.used_up = True
                    raise OverBudget
                self._change.wait()
            else:
                amount = 0.0
            self._reserved.append(amount)
            return amount

    def _mean_price(self) -> float:
        """Of the requests answered so far."""
        return self._price.cost(self.spent) / self.spent.requests if self._price and self.spent.requests else 0.0
