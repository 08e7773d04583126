"""The cache of LLM answers, ``llm_cache/answers.sqlite``, and jobs' accounts: what each spent, budget, requests lost.

Answers are keyed by the document's content, the rendered prompt, the model and the parameters. Each is on disk before
the next request, so a killed process loses none.

On one machine SQLite uses a write-ahead log. That needs shared memory, so once a cluster's node has opened the cache,
all processes use the rollback journal, which needs file locks alone.

Requests are recorded before they are sent (``asked``), and removed in the transaction that stores the answer and adds
its usage (``paid``). Requests that a killed process leaves in ``asked`` may be charged although their answer is lost.

An answer is kept as it came, so that a better reader reads it again. One that cannot be read is asked for again, unless
the job paid for it since it last ended by itself (``lately``): a kill makes no request paid twice.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from cdp.base.errors import WorkspaceError
from cdp.base.worker import on_a_node
from cdp.base.workspace import Workspace, now, sha256_text, to_json
from cdp.llm.answers import Answer, Cancelled, Embeddings, RequestError, Usage, plausible
from cdp.llm.prices import Price

BUSY_TIMEOUT_S = 30.0

A = TypeVar("A", Answer, Embeddings)

_TABLES = (
    "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, created TEXT, answer TEXT) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS asked (job TEXT, key TEXT, input_tokens INTEGER, output_tokens INTEGER,"
    " PRIMARY KEY (job, key)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS lately (job TEXT, key TEXT, PRIMARY KEY (job, key)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS paid (job TEXT PRIMARY KEY, input_tokens INTEGER, output_tokens INTEGER,"
    " requests INTEGER, estimated INTEGER, unanswered INTEGER) WITHOUT ROWID",
)
_COUNTS = ("input_tokens", "output_tokens", "requests", "estimated", "unanswered")


def cache_key(content_hash: str, prompt: str, model: str, parameters: Mapping[str, object]) -> str:
    """Return the key of an answer: 64 hex digits."""
    return sha256_text(content_hash, sha256_text(prompt), model, json.dumps(parameters, sort_keys=True, default=str))


class AnswerCache:
    """SQLite store of answers; safe to share between threads and processes."""

    def __init__(self, workspace: Workspace) -> None:
        self.path: Path = workspace.llm_cache / "answers.sqlite"
        self._lock = threading.Lock()
        self._in_flight: dict[str, threading.Event] = {}

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=BUSY_TIMEOUT_S, check_same_thread=False, isolation_level=None
            )
            shared = self.path.with_name("several-machines")

            if on_a_node():
                shared.touch()
            # Locked by a process that has the log open: it may keep it, and so may others on its machine.
            with suppress(sqlite3.OperationalError):
                self._connection.execute(f"PRAGMA journal_mode={'DELETE' if shared.exists() else 'WAL'}")

            if self._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
                if on_a_node():
                    self._connection.close()
                    raise WorkspaceError(
                        "A job on another machine uses the answer cache in a mode that machines cannot share.",
                        hint="Resume this job when that one has ended.",
                    )
                self._connection.execute("PRAGMA synchronous=NORMAL")

            for table in _TABLES:
                self._connection.execute(table)
        except (OSError, sqlite3.Error) as error:
            raise WorkspaceError(
                f"The answer cache {self.path} cannot be opened: {error}.",
                hint="Is the disk full or read-only? A damaged file can be moved away: its answers are paid for again.",
            ) from error

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
        """Return the cached answer with zero usage, None if there is none. Damaged rows are removed."""
        rows = self._read("SELECT answer FROM answers WHERE key = ?", key)
        answer = _answer_in(rows[0][0]) if rows else None
        if rows and answer is None:
            with self._transaction() as database:
                database.execute("DELETE FROM answers WHERE key = ?", (key,))
        return answer

    def put(self, key: str, answer: Answer) -> None:
        """Store an answer."""
        with self._transaction() as database:
            database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key, now(), _row_of(answer)))

    def get_or_ask(self, key: str, ask: Callable[[], Answer], *, keep: bool = True, refresh: bool = False) -> Answer:
        """Return the cached answer unless ``refresh``, else that of ``ask``, stored if ``keep``.

        Threads with the same key ask once.
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
                answer = None if refresh else self.get(key)
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
        """Record that ``job`` is about to ask for ``key``, with the usual usage of such a request."""
        with self._transaction() as database:
            row = (job, key, usual.input_tokens, usual.output_tokens)
            database.execute("INSERT OR REPLACE INTO asked VALUES (?, ?, ?, ?)", row)

    def settle(self, job: str, key: str, usage: Usage, answers: Mapping[str, Answer] | None = None) -> None:
        """Close what ``begin`` opened: add the usage and store the answers, if any, in one transaction."""
        with self._transaction() as database:
            database.execute("DELETE FROM asked WHERE job = ? AND key = ?", (job, key))
            for stored, answer in (answers or {}).items():
                database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (stored, now(), _row_of(answer)))
            if key in (answers or {}):
                database.execute("INSERT OR REPLACE INTO lately VALUES (?, ?)", (job, key))
            _add(database, job, usage)

    def paid_lately(self, job: str, key: str) -> bool:
        """Return True if ``job`` paid for this answer since it last ended by itself."""
        return bool(self._read("SELECT 1 FROM lately WHERE job = ? AND key = ?", job, key))

    def end(self, job: str) -> None:
        """Note that an attempt of ``job`` ended by itself."""
        with self._transaction() as database:
            database.execute("DELETE FROM lately WHERE job = ?", (job,))

    def spent(self, job: str) -> Usage:
        """Return the usage of all attempts of ``job``."""
        rows = self._read(f"SELECT {', '.join(_COUNTS)} FROM paid WHERE job = ?", job)
        return Usage(*rows[0]) if rows else Usage()

    def settle_interrupted(self, job: str, *, charged: bool) -> int:
        """Settle the requests that a killed attempt of ``job`` had in flight and return their number.

        With ``charged`` the endpoint may have charged for them: they count as unanswered.
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
        """Yield the database within one transaction."""
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
        """Raise WorkspaceError for SQLite's errors."""
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


def _row_of(answer: Answer) -> str:
    record: dict[str, object] = {"text": answer.text, "model": answer.model, "finish_reason": answer.finish_reason}
    if answer.logprob is not None:
        record["logprob"] = answer.logprob
    value = to_json({**record, "usage": answer.usage.to_dict()})
    return value.encode("utf-8", "replace").decode()  # of half a character (a lone surrogate) "?" is kept


def _answer_in(value: object) -> Answer | None:
    """Return the answer in a row; None if it is damaged."""
    try:
        record = json.loads(str(value))
        text, model, reason = (record[name] for name in ("text", "model", "finish_reason"))
        "".join((text, model, reason)).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return Answer(text, model=model, finish_reason=reason, usage=Usage(), logprob=plausible(record.get("logprob")))


class OverBudget(Cancelled):
    """The rest of the budget does not pay for another request."""


class Account:
    """The spending of a job over all its attempts, within a budget. Safe to share between threads.

    The largest possible price of a request is reserved before it is sent. Once that no longer fits, requests go one at
    a time while the usual price fits: only the last one can exceed the budget.
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
        """US dollars; None if the model has no price."""
        return self._price.cost(self.spent) if self._price else None

    def ask(
        self,
        key: str,
        usual: Usage,
        most: Usage,
        send: Callable[[], A],
        parts: Callable[[A], Mapping[str, Answer]] | None = None,
    ) -> A:
        """Return the answer of ``send``, cached at ``key``; with ``parts`` in parts, {key: answer}.

        ``usual`` and ``most`` are the typical and the largest usage of such a request. Raises OverBudget, and errors of
        ``send`` and ``parts``.
        """
        amount = self._reserve(usual, most)
        usage, kept = Usage(), dict[str, Answer]()

        try:
            self._cache.begin(self._job, key, usual)

            try:
                answer = send()
                usage = answer.usage

                if parts is not None:
                    kept.update(parts(answer))
                elif isinstance(answer, Answer):
                    kept[key] = answer
            except (RequestError, Cancelled) as error:
                usage = error.usage
                raise
            finally:
                self._cache.settle(self._job, key, usage, kept)

            return answer
        finally:
            with self._change:
                self.spent += usage
                self._reserved.remove(amount)
                self._change.notify_all()

    def paid_lately(self, key: str) -> bool:
        """Return True if the job paid for this answer since it last ended by itself."""
        return self._cache.paid_lately(self._job, key)

    def end(self) -> None:
        """Note that the attempt ended by itself."""
        self._cache.end(self._job)

    def close(self) -> None:
        """Cancel requests that wait for the budget."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def _reserve(self, usual: Usage, most: Usage) -> float:
        """Reserve the price of a request in US dollars; if it does not fit, wait for those in flight."""
        with self._change:
            while self._price is not None and self.budget is not None:
                if self._closed:
                    raise Cancelled

                left = self.budget - self._price.cost(self.spent) - math.fsum(self._reserved)
                mean = self._price.cost(self.spent) / self.spent.requests if self.spent.requests else 0.0

                expected = max(self._price.cost(usual), mean)
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
