"""A synthesis job divided over several workers: parts of the corpus go out, and what their journals say comes in.

The job's worker stays the only one that writes the query set and the answer cache. It looks answers up before a
document is given away, so that what is kept is asked of nobody, and two documents of equal content are never asked
about at the same time. A budget is divided: each part has a share that it cannot overshoot, what it leaves goes back,
and the last of it is spent by one worker's rule, here.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cdp.base.config import SynthesisConfig
from cdp.base.crew import Crew, Stopped
from cdp.base.errors import CdpError
from cdp.base.records import Document
from cdp.base.worker import Job, stop_grace_s
from cdp.base.workspace import append_jsonl
from cdp.query_sets.store import Files
from cdp.synthesis.cache import AnswerCache
from cdp.synthesis.generators import GENERATORS, Answer, Cancelled, Usage
from cdp.synthesis.generators import Generator as QuerySource
from cdp.synthesis.journal import Follower, entries, folder_of, journals, outcomes
from cdp.synthesis.methods import Method
from cdp.synthesis.part import STOP, WENT_WELL, Order, PartDone, write_part
from cdp.synthesis.recording import Recorder, outcome_of
from cdp.synthesis.spending import Account
from cdp.synthesis.work import Item, Work

DOCUMENTS_ASKED = 256
DOCUMENTS_WRITTEN = 4096
"""The most documents of a part, for a language model and for what computes."""

FEWEST_ASKED = 32
"""The fewest documents of a part for a language model: enough for a part to see that its endpoint is down, or that no
answer can be read (``recording.FAILURES_IN_A_ROW``)."""

PARTS_PER_WORKER = 4
"""Of a small corpus, so that no worker is left with a long part at the end."""

UNREAD = Document("", "")
"""In place of one that only the part itself reads."""

STOP_SHARE = 0.8
"""Of the time that a stop may take, what parts have to end by themselves."""


def enter(cache: AnswerCache, job_id: str, path: Path, config: SynthesisConfig, killed: str) -> Usage:
    """Take the requests of a journal over into the cache and the job's books; what they consumed.

    ``killed`` says who was, where some of them are lost.
    """
    charged = not GENERATORS[config.generator].local  # a local model's answers are lost too, and cost nothing
    n_lost, usage = cache.enter(job_id, path.name, entries(path), charged=charged)
    tell_lost(n_lost if charged else 0, killed)
    return usage


def tell_lost(n: int, killed: str = "the last attempt") -> None:
    """Say in the log what may be paid for twice."""
    if n:
        requests = "request was" if n == 1 else "requests were"
        print(
            f"{n} {requests} on the way when {killed} was killed. Their answers are lost: what is asked "
            "for again may be paid for twice.",
            flush=True,
        )


def take_what_is_left(job: Job, files: Files, cache: AnswerCache, config: SynthesisConfig) -> None:
    """What the workers of a killed attempt had done, into the files of the set and the cache."""
    folder = folder_of(job.folder)
    for path in journals(folder):  # of workers that are gone, for the attempt that they belonged to is
        enter(cache, job.id, path, config, "the last attempt")
        for line, failure in outcomes(path):
            append_jsonl(files.queries if line else files.failures, [line or failure])
        path.unlink(missing_ok=True)
        cache.forget(job.id, path.name)
    shutil.rmtree(folder, ignore_errors=True)


@dataclass
class _Given:
    """A part that was given away: what it may spend, and the contents that it asks about."""

    share: float
    contents: set[str]


class Division:
    """What the worker of a job does with its crew. ``passed`` (one byte per position) marks what needs nobody any more,
    ``written`` what has a line; ``flush`` puts lines on disk, ``report`` hears how many documents are passed.
    """

    def __init__(
        self,
        job: Job,
        config: SynthesisConfig,
        method: Method,
        work: Work,
        source: QuerySource,
        crew: Crew,
        cache: AnswerCache,
        account: Account | None,
        recorder: Recorder,
        *,
        written: bytearray,
        flush: Callable[[], None],
        report: Callable[[int], None],
    ) -> None:
        self.job, self.config, self.method, self.work = job, config, method, work
        self.source, self.crew, self.cache, self.account, self.recorder = source, crew, cache, account, recorder
        self.written, self.passed = written, bytearray(written)
        self.n_passed = 0
        self.folder = folder_of(job.folder)
        self._flush, self._report = flush, report
        self._given: dict[str, _Given] = {}
        self._n_given = 0
        self._error: CdpError | None = None
        self._stop_at: float | None = None
        self._follower = Follower(self.folder)

    def write(self, left: int) -> None:
        """Have the crew write for the ``left`` documents that are not passed yet, as far as it gets.

        Raises what ended a part where that ends the run. What nobody could do stays for the caller: after a stop, and
        where what is left of a budget buys no request for sure.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for mark in (STOP, WENT_WELL):
            (self.folder / mark).unlink(missing_ok=True)
        fewest, most = (FEWEST_ASKED, DOCUMENTS_ASKED) if self.source.is_llm else (1, DOCUMENTS_WRITTEN)
        size = max(fewest, min(most, -(-left // (PARTS_PER_WORKER * self.crew.size))))
        before = -1
        try:
            while before < self.n_passed < left and not self._ending():
                before = self.n_passed
                self._one_round(size, -(-(left - before) // size))
        finally:
            for name in list(self._given):
                self._take_over(name)
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._error is not None:
            raise self._error

    def _one_round(self, size: int, n_parts: int) -> None:
        names: list[str] = []

        def orders() -> Iterator[Order]:
            for order in self._orders(size, n_parts):
                names.append(order.name)
                yield order

        done = self.crew.each(write_part, orders(), should_stop=self._should_stop, on_done=lambda n: self._tell())
        with suppress(Stopped):
            for number, ended in done:
                self._end(names[number], ended)

    # What comes in.

    def _end(self, name: str, ended: PartDone) -> None:
        self._take_over(name)
        self._error = self._error or ended.error
        self._tell()

    def _take_over(self, name: str) -> None:
        """What the journals of a part say, into the set and the cache; their files go last."""
        paths = journals(self.folder, name)
        for path in paths:
            if self.account is not None:
                self.account.add(enter(self.cache, self.job.id, path, self.config, "a Ray worker"))
            for line, failure in outcomes(path):
                position = (line or failure or {})["position"]
                if self.written[position]:
                    continue
                if line is not None:
                    self.recorder.adopt(line)
                    self.written[position] = 1
                elif failure is not None:
                    self.recorder.adopt_failure(failure)
                if line is not None or not (failure or {}).get("kept"):
                    self._pass(position)
        self._flush()
        for path in paths:
            path.unlink(missing_ok=True)
            self.cache.forget(self.job.id, path.name)
        self._given.pop(name, None)

    def _pass(self, position: int) -> None:
        self.n_passed += not self.passed[position]
        self.passed[position] = 1

    def _tell(self) -> None:
        self._report(self.n_passed + self._follower.look())

    # What goes out.

    def _orders(self, size: int, n_parts: int) -> Iterator[Order]:
        """The parts of a round, each made when a worker is about to be free."""
        first = max(0, self.passed.find(0))
        if self.source.is_llm or self.work.source:
            items = self.work.items(self.job.workspace, start=first)
        else:  # nothing is looked up, so nobody but the part itself reads its documents
            items = (Item(at, UNREAD) for at in range(first, self.work.positions) if self.work.takes(at))
        batch: list[Item] = []
        for item in items:
            if self._ending():
                return
            if not self.passed[item.position]:
                batch.append(item)
            if len(batch) == size:
                yield from self._order(batch, n_parts)
                batch, n_parts = [], n_parts - 1
        if batch:
            yield from self._order(batch, n_parts)

    def _order(self, batch: list[Item], n_parts: int) -> Iterator[Order]:
        """The part that has these documents, as far as they must be asked about; none where all answers are kept."""
        found: dict[str, Answer] = {}
        contents: set[str] = set()
        if self.source.is_llm:
            batch = [item for item in batch if self._must_be_asked(item, contents, found)]
        self._tell()
        if not batch:
            return
        positions = [item.position for item in batch]
        start, stop = positions[0], positions[-1] + 1
        share = self._share(n_parts)
        self._n_given += 1
        name = f"{self.job.attempt}-{self._n_given:06d}"
        self._given[name] = _Given(share or 0.0, contents)
        yield Order(
            job_folder=str(self.job.folder),
            name=name,
            config=self.job.config,
            start=start,
            stop=stop,
            only=positions if len(positions) < stop - start else None,
            share=share,
            known=found,
            queries={item.position: item.queries for item in batch if item.queries},
        )

    def _must_be_asked(self, item: Item, contents: set[str], found: dict[str, Answer]) -> bool:
        """Whether a part has to ask about this document. One whose answers are kept is recorded at once, and one whose
        twin is being asked about waits for the next round, when the answer is kept.
        """
        content = item.document.content_hash
        if content in contents or any(content in given.contents for given in self._given.values()):
            return False
        kept = _Kept(self.cache)
        outcome = outcome_of(item, self.config, self.method, self.source, kept)
        if outcome.given_up:
            found |= kept.found
            contents.add(content)
            return True
        self.written[item.position] = self.recorder.record(outcome)
        self._pass(item.position)
        return False

    def _share(self, n_parts: int) -> float | None:
        """What a part may spend where so many are still to come: an equal share of what nobody else may."""
        account = self.account
        if account is None or account.budget is None or account.cost is None:
            return None
        free = account.budget - account.cost - sum(given.share for given in self._given.values())
        return max(0.0, free / max(1, n_parts))

    def _ending(self) -> bool:
        return self._error is not None or self.job.stop_requested()

    def _should_stop(self) -> bool:
        """Told to stop, parts get the time to keep the answers that are on their way, and are then given up."""
        if not self._ending():
            return False
        moment = time.monotonic()
        if self._stop_at is None:
            (self.folder / STOP).touch()
            self._stop_at = moment + STOP_SHARE * stop_grace_s()
        return moment >= self._stop_at


class _Kept:
    """The cache for looking answers up alone: what is not there is given up."""

    def __init__(self, cache: AnswerCache) -> None:
        self._cache = cache
        self.found: dict[str, Answer] = {}

    def get_or_ask(self, key: str, ask: Callable[[], Answer], *, keep: bool = True) -> Answer:
        answer = self._cache.get(key)
        if answer is None:
            raise Cancelled
        self.found[key] = answer
        return answer
