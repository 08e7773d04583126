"""What comes of each document of a run: a line of queries, or a failure; and when it is the run that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError, ConfigError, InputError, ProviderError, RepeatedFailureError
from cdp.base.failures import Failures, concerns_run, describe, line_of
from cdp.base.records import Document
from cdp.llm.answers import Cancelled, RequestError, Usage
from cdp.llm.budget import Account
from cdp.llm.cache import AnswerCache
from cdp.synthesis.generate import Generation, generate_for, to_line
from cdp.synthesis.generators import Generator as QuerySource
from cdp.synthesis.methods import Method
from cdp.synthesis.work import Item

FAILURES_IN_A_ROW = 20
"""So many documents in a row for which the endpoint kept failing: it is down, and the run stops instead of going on.
So many at the start whose answers hold no query: the model does not do what it is asked, and every one is paid for."""

SHOWN_ANSWER = 200
LOOK = "Try one document in the preview, and change the model, the prompt or max_output_tokens."


@dataclass(frozen=True)
class DocumentOutcome:
    """What happened to one document: ``generation``, or the ``error`` that kept it from one; neither if given up."""

    position: int
    document: Document
    generation: Generation | None = None
    error: Exception | None = None

    @property
    def given_up(self) -> bool:
        return self.generation is None and self.error is None


def outcome_of(
    item: Item,
    config: SynthesisConfig,
    method: Method,
    source: QuerySource,
    answers: AnswerCache | None = None,
    account: Account | None = None,
) -> DocumentOutcome:
    """Ask about one document. What concerns the whole run is raised."""
    position, document = item.position, item.document
    try:
        generation = generate_for(
            document,
            method,
            min(config.per_doc, len(item.queries)) if method.from_queries else config.per_doc,
            source,
            max_document_tokens=config.max_document_tokens,
            cache=answers,
            account=account,
            queries=item.queries,
        )
    except Cancelled:
        return DocumentOutcome(position, document)
    except RequestError as error:
        return DocumentOutcome(position, document, error=error)
    except Exception as error:
        if concerns_run(error):
            raise
        return DocumentOutcome(position, document, error=error)
    return DocumentOutcome(position, document, generation)


class Recorder:
    """Gives ``put`` each line, and writes what went wrong to ``failures``."""

    def __init__(
        self,
        per_doc: int,
        *,
        is_llm: bool,
        failures: Failures,
        put: Callable[[dict[str, Any]], None],
    ) -> None:
        self.per_doc, self.is_llm, self.failures = per_doc, is_llm, failures
        self.n_failures = self.n_incomplete = 0
        self.any_success = False
        self._put = put
        self._failing = self._unread = self._paid_unread = 0
        self._first = ""

    def record(self, outcome: DocumentOutcome) -> bool:
        """Write down what came out; True where the document now has queries. Raises where the run has to end."""
        if isinstance(outcome.error, RequestError):
            self._unanswered(outcome, outcome.error)
            return False
        if outcome.error is not None:
            self._broken(outcome, outcome.error)
            return False
        self._failing = 0
        generation = outcome.generation
        assert generation is not None
        if not generation.queries:
            self._fail(outcome, self._nothing(generation), usage=generation.usage.to_dict())
            self._unread += 1
            self._paid_unread += generation.usage.requests > 0
            if self._paid_unread >= FAILURES_IN_A_ROW and not self.any_success:
                raise ConfigError(f"The first {self._unread} answers held no query. {self._first}", hint=LOOK)
            return False
        if "too_few" in generation.problems:
            self._fail(outcome, f"Only {len(generation.queries)} of {self.per_doc} queries.")
        line = to_line(outcome.document, outcome.position, generation)
        try:
            json.dumps(line, ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:  # a query that is no text, or one that UTF-8 cannot hold
            self._broken(outcome, error)
            return False
        self.failures.done()
        self.any_success = True
        self._put(line)
        return True

    def none(self) -> CdpError:
        """Why the whole run gave nothing: the endpoint failed, its answers could not be read, or there are no words."""
        if self.failures.n:
            return RepeatedFailureError(f"No document got a query. {self.failures.last}", kind="data")
        if not self._unread:
            return ProviderError(f"No document got a query. {self._first}")
        if self.is_llm:
            return ConfigError(f"No document got a query. {self._first}", hint=LOOK)
        return InputError(f"No document got a query. {self._first}", hint="Check what the corpus holds.")

    def _unanswered(self, outcome: DocumentOutcome, error: RequestError) -> None:
        """A request for this document failed for good; ProviderError where the endpoint fails one after another."""
        line = line_of(error, outcome.document.id, outcome.document.content, position=outcome.position)
        line |= {"usage": error.usage.to_dict()} if error.usage != Usage() else {}
        line |= {"raw": [error.raw]} if error.raw else {}
        self._lose(line)
        self._failing = self._failing + 1 if error.exhausted or not self.any_success else 0
        if self._failing >= FAILURES_IN_A_ROW:
            raise ProviderError(
                f"{self._failing} documents in a row got no answer; the last time: {error.message}",
                hint=error.hint or "Resume the job when the endpoint works again: what is done stays done.",
            )

    def _broken(self, outcome: DocumentOutcome, error: Exception) -> None:
        """An exception that this document raised in whatever handled it: recorded, and the next one is tried."""
        self.n_failures += 1
        self._first = self._first or describe(error)
        document = outcome.document
        self.failures.record(document.id, error, document.content, position=outcome.position)

    def _nothing(self, generation: Generation) -> str:
        """Why a document has no query, in a sentence."""
        if not self.is_llm:
            return "The document holds no words to build a query from."
        answer = next((" ".join(text.split()) for text in generation.raw if text.strip()), "")
        return f"No query could be read from the answer: {answer[:SHOWN_ANSWER]}" if answer else "The answer was empty."

    def _fail(self, outcome: DocumentOutcome, reason: str, **more: object) -> None:
        """An answer without queries, or with too few of them."""
        generation = outcome.generation
        assert generation is not None
        line: dict[str, Any] = {
            "id": outcome.document.id,
            "unit": "document",
            "document_id": outcome.document.id,
            "position": outcome.position,
            "reason": reason,
            **more,
            "kept": len(generation.queries),
            "problems": generation.problems,
            "raw": list(generation.raw),
        }
        (self._note if generation.queries else self._lose)(line)

    def _note(self, line: dict[str, Any]) -> None:
        self.n_incomplete += 1
        self.failures.write(line, counts=False)

    def _lose(self, line: dict[str, Any]) -> None:
        self.n_failures += 1
        self._first = self._first or line["reason"]
        self.failures.write(line)
