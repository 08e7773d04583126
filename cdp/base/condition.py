"""A condition: one way of training, or a retriever that is not trained: its facts, its one name, and its controls.

Plans, records, reports, answers, the leaderboard and the figures hold this class beside what they measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, Self

from cdp.base.text import condition_name, rate

# In the place of a source, what is not trained; ``HYBRID`` is the fusion of BM25 and the untrained retriever.
UNTRAINED, BM25, HYBRID = "untrained", "bm25", "hybrid"

# Methods that wrote the training queries; HUMAN: people did.
DIVERSE, PARAPHRASED, HUMAN = "diverse", "paraphrase", "human"

# In the label of a source, between its method and its generator or corpus, where a study has the method of several.
BY, ON = " by ", " on "

# What is held equal, beside the steps: the first and the second half of a study of documents and pairs.
EQUAL_DOCUMENTS, EQUAL_PAIRS = "equal documents", "equal pairs"

# Ends the name of a fusion with BM25 by the weight that is best on dev.
WITH_BM25 = f"with {BM25.upper()}"

# What is usual: no weighting, this loss, and the queries themselves.
UNWEIGHTED, INFONCE, QUERY_ONLY = "none", "infonce", "query-only"


class Condition(NamedTuple):
    """One way of training, without the seed; the defaults are those of a retriever that is not trained.

    ``source`` is the label of its queries: their method, with generator and corpus where a study has several. ``held``
    tells the two halves of a study of documents and pairs apart: empty for equal documents, and in every other design.
    ``rate`` is the peak learning rate where several are compared; None for the retriever's own. ``layers`` are the
    trained ones (0: all) where they are compared. ``fused`` is the fusion with BM25 by the weight that dev chose.
    """

    retriever: str
    source: str = UNTRAINED
    per_doc: int = 0
    weighting: str = UNWEIGHTED
    held: str = ""
    rate: float | None = None
    loss: str = INFONCE
    query_source: str = QUERY_ONLY
    layers: int | None = None
    fused: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the condition that was written down beside other facts, as by ``flat``."""
        return cls(**{name: values[name] for name in cls._fields if name in values})

    @property
    def usual(self) -> bool:
        """Return True for a training on the queries themselves, by InfoNCE with equal weights, at the own rate."""
        return self == Condition(self.retriever, self.source, self.per_doc, held=self.held, fused=self.fused)

    @property
    def method(self) -> str:
        return method_of(self.source)

    @property
    def kind(self) -> str:
        """The source without its corpus: what the options on one corpus are told apart by."""
        return self.source.partition(ON)[0] if self.method in (DIVERSE, PARAPHRASED) else self.source

    @property
    def single(self) -> Condition | None:
        """The one query per document that several are compared with."""
        return self._replace(per_doc=1, held="") if self.per_doc > 1 else None

    @property
    def paraphrased(self) -> Condition | None:
        """The paraphrases, of the same generator and corpus, that diverse queries are compared with."""
        if self.method != DIVERSE:
            return None
        return self._replace(source=PARAPHRASED + self.source.removeprefix(DIVERSE))

    @property
    def equally_weighted(self) -> Condition | None:
        """The equal weights that other ones are compared with."""
        return self._replace(weighting=UNWEIGHTED) if self.weighting != UNWEIGHTED else None

    @property
    def name(self) -> str:
        """``minilm · diverse × 5 · cw``: what Report, Compare, Decide and Evidence call it. The Q/Doc 0 stands for all
        of a source."""
        if BM25 in (self.retriever, self.source):
            return BM25.upper()
        if self.source == UNTRAINED:
            return self.retriever or UNTRAINED
        if self.source == HYBRID:
            return condition_name(self.retriever, WITH_BM25 if self.fused else HYBRID)

        usual = ((self.weighting, UNWEIGHTED), (self.loss, INFONCE), (self.query_source, QUERY_ONLY), (self.held, ""))
        details = [value for value, plain in usual if value != plain]
        if self.rate is not None:
            details.append(f"learning rate {rate(self.rate)}")
        if self.layers is not None:
            details.append({0: "all layers", 1: "1 layer"}.get(self.layers, f"{self.layers} layers"))
        if self.fused:
            details.append(WITH_BM25)

        return condition_name(self.retriever, self.source, self.per_doc, *details)


def method_of(label: str) -> str:
    """Return the method in the label of a source: what stands before its generator and its corpus."""
    return label.partition(ON)[0].partition(BY)[0]


def flat(holder: Any) -> dict[str, Any]:
    """Return the fields of an object, those of its condition in their place, as records and ``--json`` have them."""
    values: dict[str, Any] = {}
    for name, value in asdict(holder).items():
        values |= value._asdict() if isinstance(value, Condition) else {name: value}
    return values
