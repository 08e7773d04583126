"""Which prompt to use: every candidate tried on the same sample of documents, measured, and held against a target.

The paper's Algorithm 1. A worker (``cdp.workers.prompt_tuning``) writes queries with each candidate and
measures them with the measures of ``cdp.metrics``; ``choice`` is the pure part: how far a candidate is from the target
and which one is chosen. This room lies above synthesis and metrics, which know nothing of each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.config import PromptTuningConfig
from cdp.base.errors import ConfigError, ProviderError
from cdp.base.failures import describe
from cdp.base.records import Document
from cdp.base.worker import START_FOR_S, Job
from cdp.base.workspace import Workspace, append_jsonl, read_jsonl
from cdp.corpus import get_documents, load_documents
from cdp.llm.answers import Cancelled, RequestError, Usage
from cdp.llm.cache import AnswerCache
from cdp.llm.tokens import cut, estimate_tokens
from cdp.synthesis.generate import generate_for, map_unordered
from cdp.synthesis.generators import Generator, make_generator
from cdp.synthesis.methods import METHODS, OWN, Method, get_method


@dataclass(frozen=True)
class PromptCandidate:
    """One prompt to be tried: a method of the table, or a template of the user's own (``prompt``)."""

    name: str
    method: Method
    prompt: str = ""


def candidates_of(config: PromptTuningConfig, prompts: Mapping[str, str]) -> list[PromptCandidate]:
    """The methods that ``config`` names, then the user's ``prompts`` (name → template), each checked.

    NotFoundError for an unknown method; ConfigError for a prompt without its fields, a method that cannot be tried on
    documents alone, a prompt of one's own where nothing reads it, fewer than two candidates, or one named twice.
    """
    names = [name.strip() for name in config.methods.split(",") if name.strip()]
    candidates = [PromptCandidate(name, get_method(name)) for name in names if name != OWN]
    if OWN in names:
        raise ConfigError("A prompt of your own is given as text, not by the name own.", hint="Give its file or text.")
    for candidate in candidates:
        if candidate.method.from_queries:
            raise ConfigError(
                f"The method {candidate.name} rewrites existing queries, so it is no candidate.", hint="Leave it out."
            )
    if config.generator == "template" and len(names) > 1 and not {*names} <= {"diverse", "paraphrase"}:
        raise ConfigError(
            "The generator template reads no prompts: of other methods than paraphrase it writes the same queries.",
            hint="Try diverse and paraphrase, or choose a generator that asks a language model.",
        )
    if prompts and not make_generator(config.synthesis(OWN, next(iter(prompts.values())))).is_llm:
        raise ConfigError(
            f"The generator {config.generator} reads no prompts, so yours cannot be tried with it.",
            hint="Choose one that asks a language model.",
        )
    for name, template in prompts.items():
        try:
            candidates.append(PromptCandidate(name, get_method(OWN, template), template))
        except ConfigError as error:
            raise ConfigError(f"{name}: {error.message}", hint=error.hint) from error
    twice = {c.name for c in candidates if sum(c.name == other.name for other in candidates) > 1}
    if twice:
        raise ConfigError(f"More than one candidate is called {', '.join(sorted(twice))}.", hint="Rename one of them.")
    if len(candidates) < 2:
        raise ConfigError(
            "Choosing needs at least two candidates.", hint=f"Name methods ({', '.join(METHODS)}) or add prompts."
        )
    return candidates


def sample_documents(workspace: Workspace, config: PromptTuningConfig) -> tuple[list[Document], int]:
    """Documents drawn at random, in the order of the corpus, and how many the corpus has."""
    ids = load_documents(workspace, config.corpus, columns=["id"]).column("id")
    rows = sorted(Random(config.seed).sample(range(len(ids)), min(config.documents, len(ids))))
    return list(get_documents(workspace, config.corpus, [ids[i].as_py() for i in rows]).values()), len(ids)


LINE = 0.5
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a candidate stands. ``distance`` from the target has a 95% bootstrap interval over documents; ``inside``
    is the share of the resamples in which the candidate meets the target.
    """

    distance: float
    interval: tuple[float, float]
    inside: float


@dataclass(frozen=True, slots=True)
class Tried:
    """What the choice is made from. ``quality`` is the mean of Dist-Sim and Len-Sim, None without human queries;
    ``tokens`` are those of a document's prompt and answer.
    """

    name: str
    standing: Standing
    ce: float
    self_bleu: float
    quality: float | None
    tokens: float

    @property
    def distance(self) -> float:
        return self.standing.distance


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidate that is chosen, and why, in sentences."""

    name: str
    why: str


def distances(ce: ArrayLike, self_bleu: ArrayLike, target: str) -> NDArray[np.float64]:
    """Euclidean distances of points in the unit square, each (n,), from the target's corner; 0 inside it."""
    sign = 1.0 if target == "ood" else -1.0
    beyond = (np.maximum(0.0, sign * (np.asarray(values, np.float64) - LINE)) for values in (ce, self_bleu))
    return np.asarray(np.hypot(*beyond))


def standing(ce: NDArray[np.float64], self_bleu: NDArray[np.float64], target: str, *, seed: int = 0) -> Standing | None:
    """The standing of a candidate from its documents' CE and Self-BLEU, both of shape (n_documents,).

    NaN marks documents where the measures are not defined (fewer than two queries); None if they are for none.
    """
    both = ~(np.isnan(ce) | np.isnan(self_bleu))
    ce, self_bleu = ce[both], self_bleu[both]
    if len(ce) == 0:
        return None
    drawn = np.random.default_rng(seed).integers(0, len(ce), size=(RESAMPLES, len(ce)))
    resampled = distances(ce[drawn].mean(axis=1), self_bleu[drawn].mean(axis=1), target)
    low, high = np.percentile(resampled, [2.5, 97.5])
    at = float(distances(ce.mean(), self_bleu.mean(), target))
    return Standing(at, (float(low), float(high)), float((resampled == 0).mean()))


def choose(tried: Sequence[Tried], target: str, *, ce: str = "CE") -> Choice:
    """The nearest to the target; among equally near ones the best quality, then the deepest inside, then the cheapest.

    ``tried`` holds at least one candidate; ``ce`` is what CE is called, which may have a stand-in.
    """

    def rank(candidate: Tried) -> tuple[float, float, float, float]:
        inside = 0.0
        if candidate.distance == 0:
            inside = min(abs(candidate.ce - LINE), abs(candidate.self_bleu - LINE))
        return round(candidate.distance, 6), -(candidate.quality or 0.0), -round(inside, 6), candidate.tokens

    first, *others = sorted(tried, key=rank)
    wanted = "both below 0.5" if target == "ood" else "both above 0.5"
    values = f"{ce} {first.ce:.2f} and Self-BLEU {first.self_bleu:.2f}"
    if first.distance == 0:
        why = f"It meets the target ({values}, {wanted} wanted)."
    else:
        why = (
            f"It comes nearest to the target but does not meet it: {values}, {wanted} wanted; {first.distance:.2f} "
            "away."
        )
    if others:
        why += f" {_against(first, others[0], rank(first), rank(others[0]))}"
    return Choice(first.name, why)


def _against(first: Tried, second: Tried, a: Sequence[float], b: Sequence[float]) -> str:
    """What decided against the runner-up."""
    decided = next((i for i in range(len(a)) if not math.isclose(a[i], b[i], abs_tol=1e-9)), None)
    if decided == 0:
        apart = first.standing.interval[1] < second.standing.interval[0]
        sure = "" if apart else ", although their intervals overlap: more documents would make it surer"
        return f"The next, {second.name}, is {second.distance:.2f} away{sure}."
    reasons = {
        1: f"is closer to the human queries (mean of Dist-Sim and Len-Sim {first.quality or 0:.2f} against "
        f"{second.quality or 0:.2f})",
        2: "lies further inside it",
        3: f"needs fewer tokens per document ({first.tokens:.0f} against {second.tokens:.0f})",
        None: "was named first; nothing tells them apart",
    }
    return f"{second.name} is as near; {first.name} {reasons[decided]}."


# So many documents without an answer before the first one that has one: the endpoint is down.
FAILURES_AT_FIRST = 20


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
