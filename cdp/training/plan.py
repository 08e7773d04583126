"""A training before it starts: empty settings filled in, steps between evaluations, pair weights, licence, notes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base.condition import QUERY_ONLY
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.failures import Failures
from cdp.base.text import counted
from cdp.base.workspace import ANSWERS, Workspace, sha256_text
from cdp.complexity import stopword_list
from cdp.corpus import load_manifest
from cdp.query_sets import QuerySet
from cdp.retrievers import SPARSE, Default, ResolvedRetriever, resolve
from cdp.retrievers.presets import PAPER_EPOCHS
from cdp.training.pairs import (
    BatchOrder,
    PairSet,
    check_set,
    check_teacher,
    draw_pairs,
    joined,
    with_negatives,
    with_teacher,
)
from cdp.training.reasoning import Reasoned, check_reasoned, pairs_with, unreasoned_note, uses_reasoned, with_reasoned
from cdp.training.weightings import WEIGHTINGS, Weighting
from cdp.training.weightings.column import read_weights

# Evaluations of a training where nothing else is set: the costliest part of a short one, and each lets luck choose.
EVALUATIONS = 3

# Steps between two evaluations at most: the paper's interval.
MAX_BETWEEN = 500

LORA_RATE = Default(1e-4, "With LoRA: its few parameters start without effect and need larger steps.")

FROM_RETRIEVER = ("epochs", "batch_size", "learning_rate", "scale", "max_length")


def defaults_for(defaults: Mapping[str, Default], lora: bool) -> dict[str, Default]:
    """What a retriever's settings become where they are left empty, with LoRA or without."""
    return {**defaults, **({"learning_rate": LORA_RATE} if lora else {})}


# What a static retriever lacks, and why.
NOT_OF_STATIC = {
    "mini_batch": "needs hardly any memory per text",
    "lora_rank": "has no layers",
    "trained_layers": "has no layers",
}
OF_SPARSE = ("query_sparsity", "document_sparsity")


def lacking(retriever: str, kind: str, *, static: bool) -> dict[str, str]:
    """Return the settings of a loop that a retriever does not have, each with the sentence that refuses it."""
    found = {}
    if static:
        for name, why in NOT_OF_STATIC.items():
            found[name] = f"{name!r} does not apply to a static retriever, which {why}."

    if kind != SPARSE:
        for name in OF_SPARSE:
            found[name] = f"{name!r} applies to a sparse retriever, and {retriever} is {kind}."

    return found


def complete(config: TrainingConfig, retriever: ResolvedRetriever) -> TrainingConfig:
    """``config`` with each None that a retriever has a default for replaced by it. ``max_length`` may stay None."""
    complete = _filled(config, FROM_RETRIEVER, defaults_for(retriever.defaults, lora=config.loop.lora_rank is not None))
    for name, problem in lacking(retriever.name, retriever.kind, static=retriever.is_static).items():
        if getattr(complete.loop, name) is not None:
            raise ConfigError(problem, hint="Leave it empty.")

    if complete.loop.trained_layers is not None and complete.loop.lora_rank is not None:
        raise ConfigError("'trained_layers' and 'lora_rank' are two ways to train less.", hint="Set one of them.")

    if WEIGHTINGS.named(complete.weighting).needs == "column" and not complete.weights:
        raise ConfigError(f"The weighting {complete.weighting!r} needs 'weights', a file with query_id and weight.")

    if complete.stopwords:
        if "stopwords" not in WEIGHTINGS.named(complete.weighting).settings:
            raise ConfigError(
                "A stopword list changes content words alone.", hint="Set weighting to cw, or leave it out."
            )
        stopword_list("en", complete.stopwords)

    check_reasoned(complete, "")

    if complete.loop.distil and (complete.query_source != QUERY_ONLY or complete.loop.hard_negatives == 0):
        raise ConfigError(
            "'distil' compares each query's document with its hard negatives, by the labels of the query itself.",
            hint="Leave query_source at query-only, and hard_negatives empty or above 0.",
        )

    if complete.learning_rate == 0:
        raise ConfigError("With 'learning_rate' 0 nothing is learnt.", hint="Leave it empty for the retriever's own.")
    if complete.loop.patience is not None and not complete.dev.benchmark:
        raise ConfigError("'patience' needs a 'benchmark' to evaluate on while training.")

    return complete


def on_device(config: TrainingConfig, retriever: ResolvedRetriever, device: str) -> TrainingConfig:
    """``config`` with what its retriever's preset says of training on a GPU, where the settings leave it open.

    ``device`` is a torch device's type. Elsewhere and for models without a preset it stays open, see ``precision_of``.
    """
    if device != "cuda":
        return config
    return _filled(config, ("precision", "gradient_checkpointing"), retriever.defaults)


def _filled(config: TrainingConfig, names: Sequence[str], defaults: Mapping[str, Default]) -> TrainingConfig:
    """Return ``config`` with the retriever's values for those of the settings that are left open."""
    values, settings = config.to_dict(), config.settings()
    left_open = [name for name in names if values[name] == settings[name].default and name in defaults]
    return config.replace(**{name: defaults[name].value for name in left_open})


def order_of(settings: TrainingConfig, pairs: int, processes: int = 1) -> BatchOrder:
    """The order in which a training with these complete settings sees so many pairs. ConfigError where a batch would
    leave a query without a negative, or a process without a query."""
    loop = settings.loop
    assert loop.batch_size is not None
    assert loop.epochs is not None
    order = BatchOrder(pairs, loop.batch_size, loop.epochs, settings.seed, processes, loop.steps)
    if order.rows < 1 or order.global_rows < 2:
        shared = f" for {processes} processes" if processes > 1 else ": a pair alone has no negatives"
        raise ConfigError(
            f"A batch of {min(loop.batch_size, pairs)} is too small{shared}.",
            hint="Use a larger batch_size or fewer GPUs." if processes > 1 else "Use a larger batch_size.",
        )
    return order


def eval_steps_of(settings: TrainingConfig, steps: int) -> int:
    """Steps between two evaluations of a training of so many."""
    return settings.loop.eval_steps or max(1, min(MAX_BETWEEN, -(-steps // EVALUATIONS)))


def pair_weights(
    pairs: PairSet, weighting: str, *, kappa: float = 100.0, file: str = "", stopwords: str = ""
) -> NDArray[np.float64]:
    """The raw weights of a pair set, shape (n,), without RI, which the loss multiplies in while training.

    ``file`` holds the weights for the weighting ``column``, see ``cdp.training.weightings.column``, ``stopwords`` is a
    list of one's own for content words. InputError where all weights are 0.
    """
    chosen = WEIGHTINGS.named(weighting)
    own = chosen.needs == "column"
    weights = read_weights(file, pairs.query_ids) if own else _raw_weights(pairs, chosen, kappa, stopwords)
    if not weights.any():
        raise _all_zero(weighting, pairs.query_set)
    return weights


def _raw_weights(pairs: PairSet, chosen: Weighting, kappa: float, stopwords: str) -> NDArray[np.float64]:
    """The weights of all pairs, each by the language of its set."""
    by_list = {"stopwords": stopwords} if stopwords else {}
    languages = np.array(pairs.languages or [pairs.language] * len(pairs))
    weights = np.zeros(len(pairs), dtype=np.float64)
    for language in dict.fromkeys(languages.tolist()):
        rows = np.flatnonzero(languages == language)
        weights[rows] = chosen.raw([pairs.queries[row] for row in rows], language, kappa, **by_list)
    return weights


def _all_zero(weighting: str, query_set: QuerySet) -> InputError:
    return InputError(
        f"The weighting {weighting} gives every query of {query_set.name or query_set.id} the weight 0, so no pair "
        "counts.",
        hint="Train with another weighting, for example none.",
    )


def _check_weights(workspace: Workspace, settings: TrainingConfig, query_set: QuerySet) -> None:
    """Raise InputError where all weights are 0; those of a file are checked when the pairs are read."""
    weighting = WEIGHTINGS.named(settings.weighting)
    if weighting.needs == "column":
        return
    queries = (text for line in query_sets.read_queries(workspace, query_set.id) for text in line.queries)
    # One by one: the first query mostly settles it.
    if not any(weighting.raw([text], query_set.language or "en", settings.kappa).any() for text in queries):
        raise _all_zero(settings.weighting, query_set)


@dataclass(frozen=True)
class TrainingData:
    """``settings`` with every default filled in; ``weights`` (n_pairs,) before the loss normalises them."""

    settings: TrainingConfig
    retriever: ResolvedRetriever
    pairs: PairSet
    weights: NDArray[np.float64]


def prepare(config: TrainingConfig, workspace: Workspace, failures: Failures | None = None) -> TrainingData:
    """Read it all. Raises what its parts raise: everything that can be wrong without a model is found here.

    A line of the query set that cannot be read goes to ``failures`` and is counted among what is left out.
    """
    retriever = resolve(config.retriever, workspace)
    settings = complete(config, retriever)
    parts = [
        draw_pairs(
            workspace,
            name,
            settings.seed,
            per_doc=settings.per_doc,
            documents=settings.max_documents,
            budget=settings.pairs,
            failures=failures,
        )
        for name in (settings.query_set, *settings.beside)
    ]

    pairs = joined(parts) if settings.beside else parts[0]
    pairs = pairs if settings.beside else with_negatives(pairs, workspace, settings.loop.hard_negatives)
    # One form for one recipe: None and 0 are the same training where the set has no hard negatives.
    settings = settings.replace(hard_negatives=0 if pairs.negatives is None else pairs.negatives.shape[1])
    if settings.loop.distil:
        pairs = with_teacher(pairs, workspace)

    if uses_reasoned(settings):
        check_reasoned(settings, pairs.query_set.method)
        ri = WEIGHTINGS.named(settings.weighting).needs == "reasoning"
        pairs = with_reasoned(pairs, workspace, settings.reasoning, settings.query_source, ri=ri)

    pairs.check_negatives()
    weights = pair_weights(
        pairs, settings.weighting, kappa=settings.kappa, file=settings.weights, stopwords=settings.stopwords
    )

    return TrainingData(settings, retriever, pairs, weights)


INCOMPLETE = "The query set is incomplete: only what was there is trained on."


def licence_notes(retriever: ResolvedRetriever, query_set: QuerySet, workspace: Workspace) -> dict[str, str]:
    """What is recorded of the licences of the model, the documents and the queries."""
    unknown = "not recorded here; ask its publisher."
    return {
        "model": retriever.licence or unknown,
        "documents": load_manifest(workspace, query_set.corpus_id).licence or unknown,
        "queries": query_set.licence or f"not recorded; written by {query_set.written_by}",
    }


def notes_of(data: TrainingData) -> list[str]:
    """What to know of a training on this data. ConfigError where a batch has no negatives."""
    pairs, notes = data.pairs, order_notes(order_of(data.settings, len(data.pairs)))
    if not pairs.query_set.complete:
        notes.insert(0, INCOMPLETE)

    if data.settings.stopwords:
        words = sorted(stopword_list(pairs.language, data.settings.stopwords))
        digest = sha256_text("\n".join(words))[:8]
        notes.append(f"Content words by a stopword list of one's own: {len(words):,} words, SHA-256 {digest}.")

    zero = int((data.weights == 0).sum())
    if zero:
        notes.append(f"{counted(zero, 'pair has', 'pairs have')} weight zero: good as a negative only.")

    alone = int(pairs.alone.sum())
    if alone:
        some = counted(alone, "pair has", "pairs have")
        notes.append(f"{some} no negative, and teach nothing: their queries are for all documents.")

    if pairs.unreasoned:
        notes.append(unreasoned_note(pairs.unreasoned, data.settings))

    if pairs.negatives is not None:
        missing = f"; {pairs.without_negatives:,} pairs have none" if pairs.without_negatives else ""
        notes.append(f"Hard negatives: {pairs.negatives.shape[1]} per pair from the query set{missing}.")

    return notes + [f"Left out: {count:,} {reason}." for reason, count in pairs.dropped.items()]


def order_notes(order: BatchOrder) -> list[str]:
    """What the size of a batch means for this number of pairs, where that is worth saying."""
    if order.batch_size > order.pairs:
        return [f"The batch is larger than the data: each step sees all {order.pairs:,} pairs."]
    left = order.left_out_per_epoch
    if left:
        some = counted(left, "pair, another one", "pairs, others")
        return [f"Each epoch leaves out {some} each time: its last batch."]
    return []


@dataclass(frozen=True)
class TrainingPlan:
    """The size of a training, its settings with every default filled in, the licences that apply, and notes.

    ``seen`` counts each pair as often as it is trained on. ``seconds`` come from the last training of this retriever
    here, else from its shipped speed; None without either.
    """

    pairs: int
    documents: int
    steps: int
    seen: int
    query_set: QuerySet
    settings: TrainingConfig
    licences: dict[str, str]
    seconds: float | None = None
    notes: list[str] = field(default_factory=list)


def in_order(sets: Sequence[QuerySet], corpus: str = "") -> list[QuerySet]:
    """Sort query sets (newest first) by how likely they are trained on: this corpus (or the newest set's) first, an
    LLM's or people's before a template's, reasoned forms last, diverse before others."""
    at = corpus if any(q.corpus_id == corpus for q in sets) else sets[0].corpus_id if sets else ""
    return sorted(
        sets,
        key=lambda q: (q.corpus_id != at, q.method == "reasoning", q.generator == "template", q.method != "diverse"),
    )


def reasoned_sets(workspace: Workspace, query_set: str) -> list[QuerySet]:
    """Return the corpus's query sets that may hold reasoned forms of this one's queries: those of the method reasoning
    first, then imported ones."""
    all_sets = query_sets.list_query_sets(workspace)
    corpus = next((q.corpus_id for q in all_sets if q.id == query_set), "")
    others = [q for q in all_sets if q.id != query_set and q.corpus_id == corpus]
    fitting = [q for q in others if q.method == "reasoning" or q.generator == "import"]
    return sorted(
        fitting, key=lambda q: (q.method != "reasoning", q.parameters.get("source") not in ("", None, query_set))
    )


def query_counts(workspace: Workspace, query_set: str) -> NDArray[np.int64]:
    """Return the number of queries of each document with queries, in the set's order, shape (n_documents,). Cached."""

    def compute() -> NDArray[np.int64]:
        lines = query_sets.iter_lines(workspace, query_set)
        counts = np.fromiter((sum(map(bool, map(str.strip, line["queries"]))) for line in lines), dtype=np.int64)
        return counts[counts > 0]

    return ANSWERS.get(query_sets.files(workspace, query_set).queries, "query counts", compute)


def counted_pairs(workspace: Workspace, query_set: str, config: TrainingConfig) -> tuple[int, int]:
    """Return (pairs, documents) of a set's first ``per_doc`` queries."""
    counts = query_counts(workspace, query_set)
    return int((counts if config.per_doc is None else np.minimum(counts, config.per_doc)).sum()), len(counts)


def drawn_pairs(config: TrainingConfig, pairs: int, documents: int) -> tuple[int, int]:
    """Return (pairs, documents) of a training on a random draw; exact where all documents have as many queries."""
    share = min(1.0, (config.max_documents or documents) / max(1, documents))
    if config.pairs is not None:
        share = min(share, config.pairs / max(1, pairs))
    # Of the last document as many are taken as are left of a budget.
    return round(pairs * share), max(1, math.ceil(round(documents * share, 6)))


def plan_of(
    workspace: Workspace, config: TrainingConfig, retriever: ResolvedRetriever, query_set: QuerySet
) -> TrainingPlan:
    """Return the plan of a training on a set with current counts; reads no model, and of the documents the first."""
    settings = complete(config, retriever)
    if settings.loop.distil:
        check_teacher(query_set)

    if query_set.complete and config.per_doc is None:
        pairs, documents = query_set.n_queries, query_set.n_documents
    else:
        pairs, documents = counted_pairs(workspace, query_set.id, config)

    for name in config.beside:
        more = counted_pairs(workspace, name, config)
        pairs, documents = pairs + more[0], documents + more[1]

    unreasoned = 0

    if uses_reasoned(settings):
        lines = query_sets.read_queries(workspace, query_set.id)
        forms = Reasoned(workspace, settings.reasoning)
        pairs, documents, unreasoned = pairs_with(forms, lines, settings)

    there = documents

    pairs, documents = drawn_pairs(config, pairs, documents)
    if not pairs:
        raise InputError(f"The query set {query_set.name} has no queries to train on.", hint="Generate or import some.")

    if documents < 2:
        raise InputError(
            f"These queries are for one document only ({query_set.name}), so none has a negative to learn from.",
            hint="Training needs queries for at least two different documents.",
        )

    if not config.beside:  # of several sets together the pairs are checked when they are read
        path = query_sets.files(workspace, query_set.id).queries
        ANSWERS.get(path, "negatives", lambda: check_set(workspace, query_set))
        _check_weights(workspace, settings, query_set)

    order = order_of(settings, pairs)
    notes = order_notes(order)

    if unreasoned:
        notes.append(unreasoned_note(unreasoned, settings))
    if config.max_documents is not None and there < config.max_documents:
        notes.append(f"The set has {there:,} documents with queries, fewer than the {config.max_documents:,} asked.")
    if not settings.dev.benchmark and settings.loop.epochs == PAPER_EPOCHS.value:
        notes.append("So many epochs are meant to end at the best of them: set a dev benchmark to keep it.")

    licences = licence_notes(retriever, query_set, workspace)
    seen = order.steps * order.global_rows

    return TrainingPlan(pairs, documents, order.steps, seen, query_set, settings, licences, notes=notes)


def with_ids(workspace: Workspace, config: TrainingConfig) -> TrainingConfig:
    """Return the settings with the further query sets by id. ConfigError for one that is named twice."""
    beside = [query_sets.resolve_query_set(workspace, name) for name in config.beside]
    ids = [query_sets.resolve_query_set(workspace, config.query_set).id, *(found.id for found in beside)]
    if twice := [found.name for found in beside if ids.count(found.id) > 1]:
        raise ConfigError(f"The query set {twice[0]} is named twice.", hint="Its pairs would count double.")
    return config.replace(beside=tuple(ids[1:]))


def trained_on(config: TrainingConfig) -> list[str]:
    """Return the query sets that a training reads."""
    reasoning = [config.reasoning] if config.reasoning and uses_reasoned(config) else []
    return [config.query_set, *config.beside, *reasoning]


# Figures below: two cores of an AMD EPYC processor, no GPU (docs/BENCHMARKS.md).
MODEL_LOAD_S = 0.7  # static-minilm, in a process that has loaded it before


@dataclass(frozen=True, slots=True)
class Speed:
    """Training pairs per second (each epoch counts) and texts encoded per second."""

    pairs_per_second: float
    texts_per_second: float

    def training_seconds(self, pairs: float) -> float:
        """Return seconds from loading the model to the end of training; ``pairs`` counts each epoch."""
        return MODEL_LOAD_S + pairs / self.pairs_per_second

    def encoding_seconds(self, texts: float) -> float:
        """Return seconds to encode and search ``texts``: studies measure both together."""
        return texts / self.texts_per_second


STARTING_S = 15.0  # until a job's first step: two processes start and import their libraries

DEFAULT_SPEEDS: Mapping[str, Speed] = {"static-minilm": Speed(2500.0, 3000.0)}
