"""Content words of any queries, and the recommendation that follows from them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cdp import benchmarks, principle, query_sets
from cdp import complexity as room
from cdp import corpus as corpus_room
from cdp.base.errors import InputError
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace
from cdp.benchmarks.benchmark import part
from cdp.complexity import STANDARD, CwProfile, QuestionWordEffect
from cdp.principle import Recommendation, tables
from cdp.services import corpora
from cdp.services.advice import published
from cdp.services.sharing import access
from cdp.studies.trial import judging_split

TRAINING_CAVEAT = (
    "These are synthetic training queries. The rule is about the queries of your task: give some of those for an "
    "answer."
)


DOUBTFUL = 0.5
"""Where so many queries have no content word, the language is probably another one."""

GUESSED_FROM = 1000
"""A language is guessed from so many queries."""


@dataclass(frozen=True)
class Profiled:
    """Queries with their content words: ``cw`` has shape (n,), in the order of ``texts``.

    ``for_training`` marks queries that were written to train on, which say little about the task's own. ``stopwords``
    names the list that was used. ``benchmark`` (``name:split``) or ``query_set`` (its id) is where they are from, both
    empty for pasted ones; ``dataset`` is the published dataset that the benchmark is, if it is one.
    """

    name: str
    language: str
    texts: list[str]
    cw: NDArray[np.int64]
    profile: CwProfile
    for_training: bool = False
    stopwords: str = STANDARD
    benchmark: str = ""
    query_set: str = ""
    dataset: str = ""

    @property
    def task(self) -> str:
        """The kind of task that the published dataset is of; empty where it is none of them."""
        return principle.kinds_of_datasets().get(self.dataset, "")

    @property
    def doubt(self) -> str:
        """What makes the count doubtful, in a sentence; empty if nothing does."""
        empty = float((self.cw == 0).mean())
        if empty < DOUBTFUL:
            return ""
        name = room.language_of(self.language).name
        return f"{empty:.0%} of the queries have no content word when counted as {name}: is that their language?"

    def extremes(self, n: int = 5) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
        """The n simplest and the n most complex queries, each with its CW."""
        order = np.argsort(self.cw, kind="stable")
        pairs = [(self.texts[i], int(self.cw[i])) for i in order]
        return pairs[:n], pairs[::-1][:n]

    def recommend(
        self,
        *,
        domain: str = "ood",
        task: str = "",
        generator: str = "",
        budget: int | None = None,
        n_documents: int | None = None,
    ) -> Recommendation:
        """What to do for these as target queries; with a budget of queries also on how many documents.

        ``task`` is the kind of task, that of the published dataset if it is empty; ``generator`` the model that is to
        write the training queries.

        InputError where no query has a content word: there is nothing to go by. Where many have none, that stands
        first in the advice and among the caveats, and no number comes from the line.
        """
        if not self.cw.any():
            name = room.language_of(self.language).name
            raise InputError(
                f"No query here has a content word when counted as {name}, so nothing follows from them.",
                hint="Check that they are queries, and name their language if it is another one.",
            )
        recommendation = principle.recommend(
            self.cw,
            language=self.language,
            domain=domain,
            task=task or self.task,
            generator=generator,
            dataset=self.dataset,
            budget=budget,
            n_documents=n_documents,
        )
        first = [text for text in (self.doubt, TRAINING_CAVEAT if self.for_training else "") if text]
        if self.doubt:
            # A count in the wrong language is no CW: nothing of the line may be read off at it.
            scope = replace(recommendation.scope, outside=(self.doubt.rstrip("?."), *recommendation.scope.outside))
            recommendation = replace(recommendation, scope=scope, advice=self.doubt, expected=())
        return replace(recommendation, caveats=(*first, *recommendation.caveats))


def published_range(code: str) -> tuple[int, int] | None:
    """The CW that the paper prints for MIRACL's queries in a language, lowest and highest; None for none."""
    for row in tables.table("multilingual").rows:
        if row["code"] == code:
            return row["cw_min"], row["cw_max"]
    return None


def question_words(profiled: Profiled) -> QuestionWordEffect | None:
    """What it changes whether question words count; None where the language's are not set apart."""
    if len(room.stopword_variants(profiled.language)) < 2:
        return None
    return room.question_word_effect(profiled.texts, profiled.language)


def profile_texts(
    texts: Sequence[str],
    *,
    language: str = "en",
    name: str = "pasted queries",
    stopwords: str | Collection[str] = STANDARD,
) -> Profiled:
    """Profile queries that were pasted or read from a file; empty lines are left out.

    ``language`` is guessed if it is empty; ``stopwords`` is the name of a list, the file of one's own, or the words
    themselves.
    """
    queries = [text.strip() for text in texts if text.strip()]
    if not queries:
        raise InputError("There are no queries.", hint="Give one query per line.")
    language = language or guess_language(queries)
    chosen = (
        room.stopwords_of(access.stopwords(Workspace.default(), stopwords)) if isinstance(stopwords, str) else stopwords
    )
    cw = room.count_content_words(queries, language, stopwords=chosen)
    return Profiled(name, language, queries, cw, room.profile(cw), stopwords=room.describe_stopwords(chosen))


def profile_query_set(
    workspace: Workspace, query_set: str, *, language: str = "", stopwords: str | Collection[str] = STANDARD
) -> Profiled:
    """Profile the queries of a query set, in its corpus's language unless another is named."""
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    code = language or _language_of(workspace, resolved_set.corpus_id)
    question = ("profile", code, stopwords if isinstance(stopwords, str) else tuple(sorted(stopwords)))

    def measure() -> Profiled:
        texts = [query for line in query_sets.iter_lines(workspace, resolved_set.id) for query in line["queries"]]
        if not texts:
            raise InputError(
                f"The query set {resolved_set.id} has no queries yet.", hint="Generate or import some first."
            )
        profiled = profile_texts(texts, language=code, name=resolved_set.name, stopwords=stopwords)
        return replace(profiled, for_training=resolved_set.kind == "synthetic", query_set=resolved_set.id)

    return ANSWERS.get(query_sets.files(workspace, resolved_set.id).queries, question, measure)


def profile_benchmark(
    workspace: Workspace,
    benchmark: str,
    *,
    split: str = "",
    language: str = "",
    stopwords: str | Collection[str] = STANDARD,
) -> Profiled:
    """Profile the queries of one split of a benchmark, in the benchmark's own language if none is named.

    Without a ``split`` it is test, or the only one; of several others that which would decide a test.
    """
    folder = benchmarks.resolve_benchmark(access.benchmark(workspace, benchmark), workspace)
    if not split:
        splits = benchmarks.describe(folder, workspace).splits
        split = "" if len(splits) < 2 or "test" in splits else judging_split(splits)[0]
    question = ("profile", split, language, stopwords if isinstance(stopwords, str) else tuple(sorted(stopwords)))

    def measure() -> Profiled:
        loaded_benchmark = benchmarks.load_benchmark(folder, split)
        code = language or loaded_benchmark.counted_language
        profiled = profile_texts(
            loaded_benchmark.queries,
            language=code,
            name=f"{loaded_benchmark.name} ({loaded_benchmark.split})",
            stopwords=stopwords,
        )
        return replace(
            profiled,
            benchmark=f"{loaded_benchmark.name}:{loaded_benchmark.split}",
            dataset=published.dataset_of(loaded_benchmark.name) or "",
        )

    return ANSWERS.get(part(folder, "queries"), question, measure)


def guess_language(texts: Sequence[str]) -> str:
    """The language that most of the queries seem to be in, English where it cannot be told."""
    guessed = corpus_room.guess_language("\n".join(texts[:GUESSED_FROM]))
    return "en" if guessed == "unknown" else guessed


def _language_of(workspace: Workspace, corpus_id: str) -> str:
    return corpora.cw_language(corpus_room.load_manifest(workspace, corpus_id))
