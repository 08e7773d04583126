"""A part of a synthesis job: the documents from one position of the corpus to another, asked about on any machine.

``write_part`` reads its documents itself and writes into a journal of the job's folder (``journal``). It may be run
again, by whomever: what its journals have is not asked for again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp.base.config import SynthesisConfig
from cdp.base.crew import kept
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.corpus import iter_documents
from cdp.synthesis.concurrency import map_unordered
from cdp.synthesis.generators import Answer, make_generator
from cdp.synthesis.generators import Generator as QuerySource
from cdp.synthesis.journal import Earlier, Journal, JournalBooks, JournalledFailures, folder_of, journals
from cdp.synthesis.methods import Method, method_of
from cdp.synthesis.pricing import load_price, price_file
from cdp.synthesis.recording import DocumentOutcome, Recorder, outcome_of
from cdp.synthesis.spending import Account
from cdp.synthesis.work import Item

STOP = "stop"
"""The file in the folder of journals that says that no further request is to be begun."""

WENT_WELL = "went-well"
"""The file that says that some document got queries."""

LOOK_EVERY_S = 0.25


@dataclass(frozen=True)
class Order:
    """What one worker is to do: the documents from ``start`` to ``stop``, or of them the ones at ``only``.

    ``share`` is what it may spend (US dollars), None where the job has no budget. ``known`` has answers of the cache
    by their keys, ``queries`` those of each position that a method works from.
    """

    job_folder: str
    name: str
    config: dict[str, Any]
    start: int
    stop: int
    only: list[int] | None = None
    share: float | None = None
    known: dict[str, Answer] = field(default_factory=dict)
    queries: dict[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class PartDone:
    """How a part ended. ``error`` is what ends the whole run."""

    error: CdpError | None = None


def write_part(order: Order) -> PartDone:
    """Ask about the documents of a part that its journals do not have yet; ends early where it is told to stop.

    A key comes from the environment, as that of a job does.
    """
    return _Part(order).write()


class _Part:
    def __init__(self, order: Order) -> None:
        self.order = order
        job_folder = Path(order.job_folder)
        self.job_id = job_folder.name
        self.workspace = Workspace(job_folder.parent.parent)
        self.folder = folder_of(job_folder)
        self.config = SynthesisConfig.from_dict(order.config)
        self.method: Method = method_of(self.config)
        self._looked, self._stopping = -LOOK_EVERY_S, False
        self._marked = False

    def write(self) -> PartDone:
        earlier = Earlier.of(journals(self.folder, self.order.name))
        if self._stop():
            return PartDone()
        source = kept("generator", json.dumps(self.order.config, sort_keys=True), self._made)
        journal = Journal(self.folder, self.order.name, sync=source.is_llm)
        recorder = Recorder(
            self.config.per_doc,
            is_llm=source.is_llm,
            failures=JournalledFailures(journal, "generating"),
            put=lambda line: self._put(journal, line),
            succeeded=lambda: (self.folder / WENT_WELL).exists(),
        )
        recorder.any_success = earlier.any_success
        books = JournalBooks(journal, earlier, self.order.known)
        price = load_price(source.model, price_file(self.workspace)) if source.is_llm else None
        account = Account(books, self.job_id, price=price, budget=self.order.share, to_the_last=False)
        threads = source.concurrency if source.is_llm or source.concurrency > 1 else 0

        def cancel() -> None:
            kept("generator", "", lambda: None)  # one that was told to give up answers nobody any more
            source.cancel()
            account.close()

        def tick() -> None:
            if self._stop():
                cancel()

        def left() -> Iterator[Item]:
            for item in self._items(earlier.done):
                if self._stop():
                    cancel()
                    return
                if account.used_up:
                    return
                yield item

        def one(item: Item) -> DocumentOutcome:
            return outcome_of(item, self.config, self.method, source, books, account if source.is_llm else None)

        try:
            with closing(map_unordered(one, left(), threads, tick=tick, cancel=cancel)) as outcomes:
                for outcome in outcomes:
                    if not outcome.given_up:
                        recorder.record(outcome)
        except CdpError as error:
            return PartDone(error)
        finally:
            journal.flush()
        return PartDone()

    def _made(self) -> QuerySource:
        source = make_generator(self.config)
        source.prepare()
        return source

    def _put(self, journal: Journal, line: dict[str, Any]) -> None:
        journal.add("line", line)
        if not self._marked:
            (self.folder / WENT_WELL).touch()
            self._marked = True

    def _items(self, done: set[int]) -> Iterator[Item]:
        order = self.order
        wanted = set(range(order.start, order.stop) if order.only is None else order.only) - done
        documents = iter_documents(
            self.workspace, self.config.corpus, start=order.start, limit=order.stop - order.start
        )
        for position, document in enumerate(documents, order.start):
            if position in wanted:
                yield Item(position, document, order.queries.get(position, ()))

    def _stop(self) -> bool:
        now = time.monotonic()
        if not self._stopping and now - self._looked >= LOOK_EVERY_S:
            self._looked, self._stopping = now, (self.folder / STOP).exists()
        return self._stopping
