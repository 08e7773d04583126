"""The form of what a decision rests on: options, judges, task, scores per query and where they are from.

Own studies and the published results have this one form; ``cdp.principle.decide`` reads nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cdp.base.condition import Condition
from cdp.base.statistics import Floats
from cdp.base.text import counted

# Who judged the target queries. A benchmark that says nothing else was judged by people.
PEOPLE, MODEL, TEMPLATE = "people", "model", "template"


@dataclass(frozen=True, eq=False, slots=True)
class Arm:
    """One option with its NDCG@10 in percent: ``scores`` (n_seeds, n_queries), queries in one order for all arms.

    ``held`` is EQUAL_PAIRS in the second question; in the first the documents are held equal. ``documents``,
    ``pairs``, ``steps``, ``seen`` (pairs, with repetitions) and ``seconds`` are of one training, ``query_set`` the id
    of what it was trained on. ``shown`` holds {query: first ten documents} of each seed where a model judged; empty
    elsewhere. ``api``: a service runs the retriever.

    ``people`` are the scores by people's grades where a model judged, NaN for a query with a document that people did
    not grade. ``unjudged`` is the share of its first ten documents without a judgment; they count as irrelevant in
    ``scores`` and as of the top grade in ``top``.
    """

    condition: Condition
    scores: Floats
    held: str = ""
    documents: int = 0
    pairs: int = 0
    steps: int = 0
    seconds: float = 0.0
    query_set: str = ""
    seen: int = 0
    api: bool = False
    people: Floats | None = field(default=None, repr=False)
    unjudged: float = 0.0
    top: Floats | None = field(default=None, repr=False)
    shown: Sequence[Mapping[str, Sequence[str]]] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """What tables and figures call it."""
        return self.condition.name

    @property
    def kind(self) -> str:
        return self.condition.kind

    @property
    def per_doc(self) -> int:
        return self.condition.per_doc

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def n_seeds(self) -> int:
        return len(self.scores)

    @property
    def trained(self) -> bool:
        return self.per_doc > 0


@dataclass(frozen=True, slots=True)
class Basis:
    """Where evidence is from. ``study`` is the id of an own study, empty for that of other datasets.

    ``documents`` of ``of_documents`` were trained on, each a ``unit``: a passage where files were cut. ``alike`` were
    left out, for they have the same queries in both sets, diverse and paraphrase.
    ``judged_queries`` of ``sampled_from`` (0: of all) were scored on ``split``. People labelled ``labels`` of those
    that a model judged, in ``labelled_units`` clusters (``part_labelled``: others, without a document that an option
    retrieved), and the model ``queries_by`` wrote them (empty: people);
    ``unjudged`` documents of the first tens have no judgment (-1: not known). ``dev_chosen`` is whether other queries
    than the reported ones chose the checkpoints, ``dev`` their benchmark/split, ``dev_shared`` how many did both;
    ``similarities`` is whether the untrained retriever was scored by another similarity than the trainings; ``stale``
    names what changed since, ``elsewhere`` what is not the task's own ("queries" or "documents"). Scores with the same
    ``queries`` identity are aligned. ``first_look``: the retriever is one for trying things out; ``recorded``: the
    study came with the installation; ``trained_layers``: how many upper layers were trained (0: all).
    """

    study: str = ""
    name: str = ""
    retriever: str = ""
    corpus: str = ""
    benchmark: str = ""
    split: str = ""
    documents: int = 0
    of_documents: int = 0
    alike: int = 0
    unit: str = "document"
    judged_queries: int = 0
    sampled_from: int = 0
    written_by: str = ""
    judged_by: str = PEOPLE
    judge: str = ""
    queries_by: str = ""
    labels: int = 0
    labelled_units: int = 0
    part_labelled: int = 0
    unjudged: int = -1
    language: str = "en"
    reads_language: bool = True
    in_domain: bool = False
    dev_chosen: bool = True
    dev: str = ""
    dev_shared: int = 0
    similarities: bool = False
    equal_steps: bool = True
    finished: int = 0
    planned: int = 0
    stale: tuple[str, ...] = ()
    elsewhere: str = ""
    queries: str = ""
    first_look: bool = False
    recorded: bool = False
    trained_layers: int = 0

    @property
    def trained(self) -> str:
        """The trained retriever, and what of it: ``minilm (upper 2 layers)``."""
        return trained_name(self.retriever, self.trained_layers)


def trained_name(retriever: str, layers: int) -> str:
    """Return ``minilm (upper 2 layers)``, or the retriever alone where all of it is trained (0 layers)."""
    return f"{retriever} (upper {counted(layers, 'layer')})" if layers else retriever


@dataclass(frozen=True, slots=True)
class Expectation:
    """The gain (NDCG@10 points) of several different queries over one on a new dataset, judging by others, with its 95%
    prediction interval."""

    per_doc: int
    points: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """The options of one study, benchmark split and retriever; or, without arms, what other datasets predict, with
    the ``limits`` of that in sentences. ``clusters`` number the units of the queries (``units.clusters_of``), empty
    where each is one, ``query_ids`` name them."""

    basis: Basis
    arms: tuple[Arm, ...] = ()
    expected: tuple[Expectation, ...] = ()
    limits: tuple[str, ...] = ()
    clusters: tuple[int, ...] = ()
    query_ids: tuple[str, ...] = ()

    @property
    def options(self) -> list[Arm]:
        """What the answer chooses from: all but the trainings of the second question, which is about equal pairs."""
        return [arm for arm in self.arms if not arm.held]


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be decided. ``readers`` names retrievers for ``language``.

    ``rule`` is what the published rule says of the target queries ("avoid", "test", "recommend"; empty where it has no
    evidence for such a task), ``domain`` their relation to the training queries. ``unknown`` says why nothing follows
    from other datasets; empty where something does.
    """

    language: str = "en"
    domain: str = "ood"
    rule: str = ""
    readers: Sequence[str] = ()
    unknown: str = ""
