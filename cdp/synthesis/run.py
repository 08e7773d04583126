"""A synthesis job: queries for every document of a corpus, appended as they come, resumable at any moment.

What goes wrong with one document, a bug of our own included, is recorded and the run goes on; see ``base.failures``.

Each document's line is appended to ``queries.jsonl`` as soon as its answer is there, in whatever order; when the run
ends the file is put into the order of the corpus. A resumed run skips the documents that have a line and asks again
about those that had failed; an answer that was already paid for comes from the cache.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.worker import START_FOR_S, Job
from cdp.base.workspace import append_jsonl
from cdp.corpus import load_manifest
from cdp.llm.answers import Usage
from cdp.llm.budget import Account
from cdp.llm.cache import AnswerCache
from cdp.llm.prices import load_price, price_file
from cdp.query_sets.ordered import put_in_order, scan
from cdp.synthesis.concurrency import map_unordered
from cdp.synthesis.generators import GENERATORS, make_generator
from cdp.synthesis.generators import Generator as QuerySource
from cdp.synthesis.generators.template import spread
from cdp.synthesis.manifests import open_query_set, query_set_id
from cdp.synthesis.methods import Method, method_of
from cdp.synthesis.recording import DocumentOutcome, Recorder, outcome_of
from cdp.synthesis.work import Item, Work

FLUSH_LINES = 256
FLUSH_EVERY_S = 1.0
"""Answers that cost nothing are written in blocks; those of an LLM at once."""

METRIC_EVERY_S = 5.0


class Run:
    """One attempt at a synthesis job."""

    def __init__(self, job: Job, *, api_key: str = "") -> None:
        self.job = job
        self.config = SynthesisConfig.from_dict(job.config)
        self.method: Method = method_of(self.config)
        self.corpus = load_manifest(job.workspace, self.config.corpus)
        self.source: QuerySource = make_generator(self.config, api_key=api_key)
        self.query_set_id = query_set_id(job.id, self.config)
        self.files = query_sets.files(job.workspace, self.query_set_id)
        self.work = Work.of(job.workspace, self.config, self.method, self.corpus)
        self.total = self.work.documents
        self.account: Account | None = None
        self._spent_before = Usage()
        self.price = load_price(self.source.model, price_file(job.workspace)) if self.source.is_llm else None
        if self.config.budget is not None and self.source.is_llm and self.price is None:
            raise ConfigError(
                f"There is no price for {self.source.model!r}, so a budget cannot be kept.",
                hint="Add the model to the price table, or leave the budget out.",
            )
        failures = job.failures("generating", path=self.files.failures, keep=True)
        self.recorder = Recorder(self.config.per_doc, is_llm=self.source.is_llm, failures=failures, put=self._put)
        self.job.n_failures = 0  # what failed before is asked about again
        self._began = time.monotonic()
        self._buffer: list[dict[str, Any]] = []
        self._flushed = self._measured = self._began
        self._done = 0

    def execute(self) -> dict[str, Any]:
        """Do what is left to do; returns (and stores) the result. Raises ProviderError where no request can succeed."""
        self._open()
        self.job.progress("loading", 0, 0, "", self.source.model, next_within_s=START_FOR_S)
        self.source.prepare()
        with AnswerCache(self.job.workspace) as cache:
            written = bytearray(self.work.positions)
            spent = self._written_before(written)
            self._report()
            self.recorder.any_success = self._done > 0
            try:
                self._open_account(cache, spent)
                self._write(cache, written)
            finally:
                self._flush()
                result = self._close(written)
        if self._over_budget() and not result["complete"]:
            raise ConfigError(
                f"The budget of {self.config.budget:g} US dollars is used up; {result['n_documents']} of {self.total} "
                "documents have queries.",
                hint="Start a new job with a larger budget: what was paid for is not paid for again.",
            )
        if self.recorder.n_failures and not self.recorder.any_success:
            raise self.recorder.none()
        return result

    def _written_before(self, written: bytearray) -> Usage:
        """Mark what earlier attempts have written; what their lines say that it cost."""
        spent = Usage()
        for _, _, line in scan(self.files.queries):
            if line["position"] < len(written) and not written[line["position"]]:
                written[line["position"]] = 1
                self._done += 1
                spent += Usage.from_dict(line.get("usage"))
        for _, _, line in scan(self.files.failures):
            spent += Usage.from_dict(line.get("usage"))
        return spent

    def _write(self, cache: AnswerCache, written: bytearray) -> None:
        """Ask about the documents that have no line yet."""
        left = max(1, self.total - self._done)
        with spread(self.source, left) as self.source:
            threads = self.source.is_llm or self.source.concurrency > 1
            workers = min(self.source.concurrency, left) if threads else 0
            with closing(self._outcomes(cache, written, workers)) as outcomes:
                for outcome in outcomes:
                    if outcome.given_up:
                        continue
                    if self.recorder.record(outcome):
                        written[outcome.position] = 1
                    self._done += 1
                    self._report()

    def _open_account(self, cache: AnswerCache, spent: Usage) -> None:
        """The job's books, with ``spent`` as their beginning for a set that has none: an older version wrote it."""
        if not self.source.is_llm:
            return
        if cache.spent(self.job.id) is None:
            cache.spend(self.job.id, spent)
        charged = not GENERATORS[self.config.generator].local  # a local model's answers are lost too, and cost nothing
        lost = cache.take_lost(self.job.id, charged=charged)
        if lost and charged:
            requests = "request was" if lost == 1 else "requests were"
            print(
                f"{lost} {requests} on the way when the last attempt was killed. Their answers are lost: what is asked "
                "for again may be paid for twice.",
                flush=True,
            )
        self.account = Account(cache, self.job.id, price=self.price, budget=self.config.budget)
        self._spent_before = self.account.spent

    def _cancel(self) -> None:
        self.source.cancel()
        if self.account is not None:
            self.account.close()

    def _outcomes(self, cache: AnswerCache, written: bytearray, workers: int) -> Generator[DocumentOutcome, None, None]:
        def one(item: Item) -> DocumentOutcome:
            return outcome_of(item, self.config, self.method, self.source, cache, self.account)

        return map_unordered(one, self._left(written), workers, tick=self._tick, cancel=self._cancel)

    @property
    def spent(self) -> Usage:
        """What all attempts of this job have consumed."""
        return self.account.spent if self.account else Usage()

    @property
    def usage(self) -> Usage:
        """What this attempt has consumed."""
        return self.spent - self._spent_before

    @property
    def cost(self) -> float | None:
        """US dollars that all attempts of this job have cost; None where the model has no price."""
        return self.price.cost(self.spent) if self.price else None

    def _over_budget(self) -> bool:
        return self.account is not None and self.account.used_up

    def _tick(self) -> None:
        """Nothing came for a while: still notice a stop, and still show life."""
        if self.job.stop_requested():
            self._cancel()
        self._report()

    def _open(self) -> None:
        open_query_set(
            self.job,
            self.config,
            self.method,
            self.corpus,
            generator=self.source.name,
            model=self.source.model,
            parameters=self.source.parameters,
        )

    def _left(self, written: bytearray) -> Iterator[Item]:
        """The documents that have no line yet, until the end or a request to stop."""
        for item in self.work.items(self.job.workspace, start=max(0, written.find(0))):
            if self.job.stop_requested():
                self._cancel()
                return
            if self._over_budget():
                return
            if not written[item.position]:
                yield item

    def _put(self, line: dict[str, Any]) -> None:
        self._buffer.append(line)
        waited = time.monotonic() - self._flushed
        if self.source.is_llm or len(self._buffer) >= FLUSH_LINES or waited >= FLUSH_EVERY_S:
            self._flush()

    def _flush(self) -> None:
        append_jsonl(self.files.queries, self._buffer)
        self._buffer = []
        self._flushed = time.monotonic()

    def _report(self) -> None:
        failed = self.recorder.n_failures
        message = f"{failed} without queries" if failed else ""
        self.job.progress("generating", self._done, self.total, "documents", message)
        if time.monotonic() - self._measured >= METRIC_EVERY_S:
            self._measured = time.monotonic()
            self.job.metric(self._done, failures=failed, **self.usage.to_dict())

    def _close(self, written: bytearray) -> dict[str, Any]:
        """Put the files in order and write manifest and result. A failure of a later success is dropped."""
        queries, failures = self.files.queries, self.files.failures
        put_in_order(queries, merge=_last)
        if failures.exists():
            incomplete = {line["position"] for _, _, line in scan(queries) if "too_few" in line.get("problems", {})}
            put_in_order(failures, merge=_last, keep=lambda at: not written[at] or at in incomplete)
        failed = [line for _, _, line in scan(failures)]
        n_failures = sum(not line.get("kept") for line in failed)
        self.job.n_failures = n_failures
        totals = query_sets.count(queries)
        complete = totals.n_documents + n_failures == self.total
        query_sets.update(
            self.job.workspace,
            self.query_set_id,
            complete=complete,
            n_documents=totals.n_documents,
            n_queries=totals.n_queries,
            n_failures=n_failures,
            content_hash=totals.content_hash if complete else "",
        )
        result = {
            "id": self.job.id,
            "query_set": self.query_set_id,
            "corpus": self.corpus.id,
            "n_documents": totals.n_documents,
            "n_queries": totals.n_queries,
            "failures": n_failures,
            "incomplete": len(failed) - n_failures,
            "complete": complete,
            "usage": self.usage.to_dict(),
            "spent": self.spent.to_dict(),
            "cost": self.cost,
            "price_as_of": self.price.as_of if self.price else None,
            "model": self.source.model,
            "seconds": round(time.monotonic() - self._began, 3),
            "attempt": self.job.attempt,
        }
        self.job.result("synthesis", result)
        return result


def _last(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return lines[-1]
