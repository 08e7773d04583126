"""A synthesis job over a corpus, resumable: lines appended, failures, budget, when it gives up, final order.

What goes wrong with one document, a bug of our own included, is recorded and the run goes on; see ``base.failures``.

Each document's line is appended to ``queries.jsonl`` as soon as its answer arrives, in any order; when the run
ends the file is put into the order of the corpus. A resumed run skips the documents that have a line and asks again
about those that had failed; an answer that was already paid for comes from the cache.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError, ConfigError, InputError, ProviderError, RepeatedFailureError
from cdp.base.failures import Failures, Streak, describe, is_fatal, line_of
from cdp.base.redaction import clean
from cdp.base.text import counted
from cdp.base.worker import START_FOR_S, Job
from cdp.base.workspace import append_jsonl, write_jsonl
from cdp.corpus import load_manifest
from cdp.llm.answers import Cancelled, RequestError, Usage, prompts_cut
from cdp.llm.cache import Account, AnswerCache
from cdp.llm.prices import price_of
from cdp.query_sets.store import put_in_order, scan
from cdp.synthesis.generate import Generation, generate_for, map_unordered, to_line
from cdp.synthesis.generators import make_generator
from cdp.synthesis.methods import method_of
from cdp.synthesis.work import Groups, Item, Work, finish, open_query_set, query_set_id

METRIC_EVERY_S = 5.0

SHOWN_ANSWER = 200
LOOK = "Try one document in the preview, and change the model, the prompt or max_output_tokens."

# What happened to one document: what was written for it, or the error that kept it from that.
ItemOutcome = tuple[Item, Generation | Exception]


class SynthesisRun:
    """One attempt at a synthesis job."""

    def __init__(self, job: Job, *, api_key: str = "") -> None:
        self.job = job
        self.config = SynthesisConfig.from_dict(job.config)
        self.method = method_of(self.config)
        self.corpus = load_manifest(job.workspace, self.config.corpus)

        self.source = make_generator(self.config, api_key=api_key)
        self.source.remember(job.folder)
        self.query_set_id = query_set_id(job.id, self.config)
        self.files = query_sets.files(job.workspace, self.query_set_id)
        self.work = Work.of(job.workspace, self.config, self.method, self.corpus)
        self.total = self.work.documents

        self.account: Account | None = None
        self._spent_before = Usage()
        self.price = price_of(job.workspace, self.source.model, self.config.budget) if self.source.is_llm else None

        failures = job.failures("generating", path=self.files.failures, keep=True)
        self.recorder = Recorder(self.config.per_doc, self.files.queries, failures, is_llm=self.source.is_llm)
        self.job.n_failures = 0  # what failed before is asked about again
        self._began = self._measured = time.monotonic()
        self._done = 0
        self._groups: Groups | None = None
        self._written = bytearray(self.work.positions)

    def execute(self) -> dict[str, Any]:
        """Do what is left to do; return (and store) the result. Raises ProviderError where no request can succeed."""
        open_query_set(
            self.job, self.config, self.method, self.corpus,
            generator=self.source.name, model=self.source.model, parameters=self._sent(),
        )  # fmt: skip

        self.job.progress("loading", 0, 0, "", self.source.model, next_within_s=START_FOR_S)
        self.source.prepare()

        with AnswerCache(self.job.workspace) if self.source.is_llm else nullcontext() as cache:
            for _, _, line in scan(self.files.queries):
                if line["position"] < len(self._written) and not self._written[line["position"]]:
                    self._written[line["position"]] = 1
                    self._done += 1

            self._report()
            self.recorder.any_success = self._done > 0

            if self.method.joint:
                self._groups = self._grouped()

            try:
                if cache is not None:
                    self._open_account(cache)
                self._write(cache)
            finally:
                result = self._close()

        if self._over_budget() and not result["complete"]:
            raise ConfigError(
                f"The budget of {self.config.budget:g} US dollars is used up; {result['n_documents']} of {self.total} "
                "documents have queries.",
                hint="Start a new job with a larger budget: what was paid for is not paid for again.",
            )

        if self.recorder.n_failures and not self.recorder.any_success:
            raise self.recorder.none()

        return result

    def _grouped(self) -> Groups:
        """Return the groups of documents, the same in every attempt; documents in none are recorded as failed."""
        path = self.files.groups
        if not path.exists():
            made = self.work.groups(self.job.workspace, self.corpus, self.job.advance)
            write_jsonl(path, ({"position": group[0][0], "documents": group} for group in made))

        groups: Groups = []
        grouped: set[int] = set()
        for _, _, line in scan(path):
            groups.append([(at, name) for at, name in line["documents"]])
            grouped.update(at for at, _ in groups[-1])

        for item in self.work.items(self.job.workspace):
            if item.position not in grouped:
                self.recorder.leave_out(item, "No related document was left for it.")
                self._done += 1

        return groups

    def _sent(self) -> dict[str, object]:
        """Return the parameters as they are sent: the method's own in place of the job's, None for what the model does
        not take."""
        if not self.source.is_llm:
            return self.source.parameters

        sent = self.method.sampling_for(self.config.per_doc).within(self.source.parameters)
        untaken = dict.fromkeys(sent.keys() & set(self.source.unsent))
        # The seeds of single requests follow from the job's.
        return {**sent, "seed": self.config.seed, **untaken}

    @property
    def spent(self) -> Usage:
        """What all attempts of this job have consumed."""
        return self.account.spent if self.account else Usage()

    @property
    def usage(self) -> Usage:
        """What this attempt has consumed."""
        return self.spent - self._spent_before

    def _open_account(self, cache: AnswerCache) -> None:
        # A local model's answers are lost too, and cost nothing.
        charged = not self.config.endpoint.local
        lost = cache.settle_interrupted(self.job.id, charged=charged)
        if lost and charged:
            requests = "request was" if lost == 1 else "requests were"
            print(
                f"{lost} {requests} on the way when the last attempt was killed. Their answers are lost: asking again "
                "may cost twice.",
                flush=True,
            )
        self.account = Account(cache, self.job.id, price=self.price, budget=self.config.budget)
        self._spent_before = self.account.spent

    def _write(self, cache: AnswerCache | None) -> None:
        """Ask about the documents that have no line yet."""
        workers = 0
        if self.source.is_llm:
            workers = min(self.source.concurrency, max(1, self.total - self._done))

        ask = partial(self._ask, cache)
        made = map_unordered(ask, self._left(), workers, tick=self._tick, cancel=self._cancel)
        with closing(made) as outcomes:
            for outcome in outcomes:
                if outcome is None:
                    continue
                item, result = outcome
                written = self.recorder.record(item, result)
                for position, _ in item.members:
                    self._done += not self._written[position]
                    self._written[position] |= written
                self._report()

    def _ask(self, cache: AnswerCache | None, item: Item) -> ItemOutcome | None:
        """Ask about one document; None if it was given up. Errors that concern the whole run are raised."""
        try:
            generation = generate_for(
                item.document,
                self.method,
                self.config.per_doc,
                self.source,
                max_document_tokens=self.config.endpoint.max_document_tokens,
                cache=cache,
                account=self.account,
                queries=item.queries,
            )
        except Cancelled:
            return None
        except Exception as error:
            if not isinstance(error, RequestError) and is_fatal(error):
                raise
            return item, error

        return item, generation

    def _left(self) -> Iterator[Item]:
        """The documents without a line, until the end or a request to stop."""
        start = max(0, self._written.find(0))
        for item in self.work.items(self.job.workspace, start=start, groups=self._groups):
            if self.job.stop_requested():
                self._cancel()
                return
            if self._over_budget():
                return
            done = all(self._written[position] for position, _ in item.members)
            if not done and self.job.takes(item.document.id):
                yield item

    def _cancel(self) -> None:
        self.source.cancel()
        if self.account is not None:
            self.account.close()

    def _over_budget(self) -> bool:
        return self.account is not None and self.account.used_up

    def _tick(self) -> None:
        """While no answer comes: notice a request to stop, and report progress."""
        if self.job.stop_requested():
            self._cancel()
        self._report()

    def _report(self) -> None:
        failed = self.recorder.n_failures
        self.job.progress("generating", self._done, self.total, "documents", " · ".join(self.recorder.notes))
        if time.monotonic() - self._measured >= METRIC_EVERY_S:
            self._measured = time.monotonic()
            self.job.metric(self._done, failures=failed, **self.usage.to_dict())

    def _close(self) -> dict[str, Any]:
        """Put the files in order and write manifest and result. A failure of a later success is dropped."""
        if self.account is not None and not self.job.stop_requested():
            self.account.end()

        queries, failures = self.files.queries, self.files.failures
        put_in_order(queries)

        if failures.exists():
            incomplete = {line["position"] for _, _, line in scan(queries) if "too_few" in line.get("problems", {})}
            put_in_order(failures, keep=lambda at: not self._written[at] or at in incomplete)

        if self.source.unsent:  # learnt on the way
            manifest = query_sets.load(self.job.workspace, self.query_set_id)
            query_sets.update(self.job.workspace, manifest.id, parameters={**manifest.parameters, **self._sent()})

        kept = [bool(line.get("kept")) for _, _, line in scan(failures)]
        n_failures, n_short = kept.count(False), kept.count(True)
        totals = query_sets.count(queries)

        notes = self.recorder.notes
        if n_short:
            documents = counted(n_short, "document")
            notes.append(f"Fewer than {self.recorder.per_doc} queries for {documents} of {totals.n_documents:,}.")

        return finish(
            self.job,
            self.query_set_id,
            self.corpus,
            totals,
            n_failures,
            began=self._began,
            complete=totals.n_documents + n_failures == self.total,
            notes=notes,
            incomplete=n_short,
            usage=self.usage.to_dict(),
            spent=self.spent.to_dict(),
            cost=self.price.cost(self.spent) if self.price else None,
            price_as_of=self.price.as_of if self.price else None,
            model=self.source.model,
        )


class Recorder:
    """Appends the line of each document to ``path``, writes what went wrong to ``failures``, and ends a run that is
    wrong."""

    def __init__(self, per_doc: int, path: Path, failures: Failures, *, is_llm: bool) -> None:
        self.per_doc, self.path, self.failures, self.is_llm = per_doc, path, failures, is_llm
        self.n_failures = 0
        self.any_success = False
        self._unanswered = Streak()  # documents for which the endpoint kept failing: it is down
        # Paid answers at the start that hold no query: the model does not do what it is asked.
        self._paid_unread = Streak()
        self._unread = 0
        self._first = ""
        self._problems = Counter[str]()

    @property
    def notes(self) -> list[str]:
        """What this attempt's answers had that a person should know."""
        notes = []
        if lost := prompts_cut(self._problems["prompt_cut"]):
            notes.append(lost)
        if cut := self._problems["cut_off"]:
            notes.append(
                f"{counted(cut, 'document')} with an answer that was cut off: what it ended with was left out."
            )

        return notes

    def record(self, item: Item, outcome: Generation | Exception) -> bool:
        """Write down what came out; True where the document now has queries. Raises where the run has to end."""
        if isinstance(outcome, RequestError):
            self._fail(item, outcome)
            return False

        if isinstance(outcome, Exception):
            self._broken(item, outcome)
            return False

        self._unanswered.end()
        self._problems.update(outcome.problems)

        if not outcome.queries:
            self._lose(item, {**_line(item, outcome, self._nothing(outcome)), "usage": outcome.usage.to_dict()})
            self._unread += 1
            if outcome.usage.requests and self._paid_unread.add() and not self.any_success:
                raise ConfigError(f"The first {self._unread} answers held no query. {self._first}", hint=LOOK)
            return False

        if "too_few" in outcome.problems:
            reason = f"Only {len(outcome.queries)} of {self.per_doc} queries."
            if "cut_off" in outcome.problems:
                reason += " The answer was cut off."
            self.failures.write(_line(item, outcome, reason), counts=False)

        lines = _lines(item, outcome)

        try:
            json.dumps(lines, ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:  # a query that is no text, or one that UTF-8 cannot hold
            self._broken(item, error)
            return False

        self.failures.done()
        self.any_success = True
        append_jsonl(self.path, lines)

        return True

    def leave_out(self, item: Item, reason: str) -> None:
        """Record a document that no request is about."""
        self._lose(item, {"unit": "document", "reason": reason})

    def none(self) -> CdpError:
        """Return why the whole run gave no query: the endpoint, its answers, or a corpus without words."""
        if self.failures.n:
            return RepeatedFailureError(f"No document got a query. {self.failures.last}", kind="data")
        if not self._unread:
            kind = ProviderError if self.is_llm else ConfigError  # without an endpoint nothing is wrong with a network
            return kind(f"No document got a query. {self._first}")
        if self.is_llm:
            return ConfigError(f"No document got a query. {self._first}", hint=LOOK)
        return InputError(f"No document got a query. {self._first}", hint="Check what the corpus holds.")

    def _fail(self, item: Item, error: RequestError) -> None:
        """A request for this document failed for good; ProviderError where the endpoint fails one after another."""
        line = line_of(error, item.document.id, item.document.content, position=item.position)
        if error.usage != Usage():
            line["usage"] = error.usage.to_dict()
        if error.raw:
            line["raw"] = [error.raw]

        self._lose(item, line)
        if self.any_success and not error.exhausted:
            self._unanswered.end()
        elif self._unanswered.add():
            raise ProviderError(
                f"{self._unanswered.n} documents in a row got no answer; the last time: {error.message}",
                hint=error.hint or "Resume the job when the endpoint works again: what is done stays done.",
            )

    def _broken(self, item: Item, error: Exception) -> None:
        """An exception in our own code, or a plug-in's: recorded, and the next document is tried."""
        self.n_failures += len(item.members)
        self._first = self._first or describe(error)
        self.failures.record(item.document.id, error, item.document.content, position=item.position)
        for position, document in item.members[1:]:
            self.failures.write(line_of(error, document.id, document.content, position=position))

    def _nothing(self, generation: Generation) -> str:
        """Return why a document has no query, in a sentence."""
        if not self.is_llm:
            return "The document holds no words to build a query from."

        answer = next((" ".join(clean(text).split()) for text in generation.raw if text.strip()), "")
        if not answer:
            return "The answer was empty."
        if "cut_off" in generation.problems:
            return f"The answer was cut off before a query was whole: {answer[:SHOWN_ANSWER]}"
        return f"No query could be read from the answer: {answer[:SHOWN_ANSWER]}"

    def _lose(self, item: Item, line: dict[str, Any]) -> None:
        """Record each document of the item as one without queries; what was paid stands with the first."""
        self.n_failures += len(item.members)
        self._first = self._first or line["reason"]
        for position, document in item.members:
            self.failures.write({**line, "id": document.id, "document_id": document.id, "position": position})
            line.pop("usage", None)


def _lines(item: Item, generation: Generation) -> list[dict[str, Any]]:
    """Return a line for each document that was asked about; what was paid and went wrong stands with the first."""
    lines = []
    for position, document in item.members:
        together = [other for at, other in item.members if at != position]
        lines.append(to_line(document, position, generation, together))
        generation = dataclasses.replace(generation, answers=[], problems=Counter())
    return lines


def _line(item: Item, generation: Generation, reason: str) -> dict[str, Any]:
    """Return the failure line of a document whose answer holds no query, or too few."""
    name = item.document.id
    line = {"id": name, "unit": "document", "document_id": name, "position": item.position, "reason": reason}
    return line | {"kept": len(generation.queries), "problems": generation.problems, "raw": list(generation.raw)}
