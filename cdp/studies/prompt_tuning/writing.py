"""Queries of one candidate for the sampled documents, each kept as soon as it is there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from cdp.base.config import PromptTuningConfig
from cdp.base.errors import ProviderError
from cdp.base.failures import describe
from cdp.base.records import Document
from cdp.base.worker import START_FOR_S, Job
from cdp.base.workspace import append_jsonl, read_jsonl
from cdp.llm.answers import Cancelled, RequestError, Usage
from cdp.llm.cache import AnswerCache
from cdp.llm.tokens import cut, estimate_tokens
from cdp.studies.prompt_tuning.candidates import PromptCandidate
from cdp.synthesis.concurrency import map_unordered
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators import Generator

FAILURES_AT_FIRST = 20
"""So many documents without an answer before the first one that has one: the endpoint is down."""


@dataclass
class WrittenQueries:
    """What a candidate wrote: ``queries`` by document id. ``usage`` is what was paid in this job: an answer that was
    paid for earlier costs nothing.
    """

    queries: dict[str, list[str]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    n_failures: int = 0
    n_incomplete: int = 0
    first_failure: str = ""


def write(
    job: Job,
    candidate: PromptCandidate,
    documents: Sequence[Document],
    config: PromptTuningConfig,
    source: Generator,
    cache: AnswerCache,
) -> WrittenQueries | None:
    """Write what is still missing; None if a stop was requested. ProviderError where no request can succeed."""
    path = job.folder / "checkpoints" / f"{candidate.name}.jsonl"
    failures = job.failures(f"writing with {candidate.name}")
    written = WrittenQueries()
    for line in read_jsonl(path) if path.exists() else ():
        _take(written, line, config.per_doc)
    left = [document for document in documents if document.id not in written.queries]
    phase = f"trying {candidate.name}"

    def report() -> None:
        done = len(documents) - len(left) + seen
        job.progress(phase, done, len(documents), "documents", next_within_s=START_FOR_S)
        if job.stop_requested():
            source.cancel()

    def one(document: Document) -> dict[str, Any] | tuple[Document, Exception] | None:
        if job.stop_requested():
            return None
        try:
            generation = generate_for(
                document, candidate.method, config.per_doc, source, cache=cache,
                max_document_tokens=config.max_document_tokens,
            )  # fmt: skip
        except Cancelled:
            return None
        except RequestError as error:
            return {"document_id": document.id, "queries": [], "error": str(error)}
        except Exception as error:
            return document, error
        return {"document_id": document.id, "queries": list(generation.queries), "usage": generation.usage.to_dict()}

    seen = 0
    report()
    workers = min(source.concurrency, max(1, len(left))) if source.is_llm else 0
    with closing(map_unordered(one, left, workers, tick=report, cancel=source.cancel)) as lines:
        for line in lines:
            if line is None:
                continue
            seen += 1
            if isinstance(line, tuple):
                document, error = line
                failures.record(document.id, error, document.content)
                line = {"document_id": document.id, "queries": [], "error": describe(error)}
            elif line["queries"]:
                failures.done()
            _take(written, line, config.per_doc)
            if line["queries"]:
                append_jsonl(path, [line])
            elif written.n_failures >= FAILURES_AT_FIRST and not written.queries:
                raise ProviderError(f"{written.n_failures} documents got no answer. {written.first_failure}")
            report()
    return None if job.stop_requested() else written


def _take(written: WrittenQueries, line: dict[str, Any], per_doc: int) -> None:
    written.usage += Usage(**line.get("usage", {}))
    if line["queries"]:
        written.queries[line["document_id"]] = line["queries"]
        written.n_incomplete += len(line["queries"]) < per_doc
    else:
        written.n_failures += 1
        written.first_failure = written.first_failure or line.get("error") or "No query could be read from the answer."


def tokens_per_document(
    candidate: PromptCandidate, documents: Sequence[Document], written: WrittenQueries, config: PromptTuningConfig
) -> tuple[float, float]:
    """Mean tokens of a document's prompt and of its answer, estimated from the texts, whether or not they were paid."""
    method = candidate.method
    limit = min(config.max_document_tokens, method.max_document_tokens or config.max_document_tokens)
    calls = config.per_doc if method.one_per_call else 1
    prompts = [
        calls * estimate_tokens(method.render(cut(document.content, limit).text, config.per_doc))
        for document in documents
    ]
    answers = [estimate_tokens("\n".join(f"{i}. {q}" for i, q in enumerate(qs, 1))) for qs in written.queries.values()]
    return sum(prompts) / max(1, len(prompts)), sum(answers) / max(1, len(answers))
