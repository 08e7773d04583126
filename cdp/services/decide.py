"""The one answer for a task: what was measured here, else the nearest evidence, else that there is none.

``decide`` is what the Decide page, the overview and ``decide`` on the command line show.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from cdp.base.config import SynthesisConfig, TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.file_cache import ANSWERS
from cdp.base.text import signed
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest, load_manifest, resolve_corpus
from cdp.evaluation import bm25
from cdp.principle import SCALING, Recommendation
from cdp.principle.recommend import FEW_QUERIES
from cdp.retrievers import resolve
from cdp.services import commands, complexity, synthesis
from cdp.services import measured as measuring
from cdp.services.complexity import Profiled
from cdp.services.measured import Measured
from cdp.services.synthesis import Writer, dollars, writer
from cdp.studies.estimate import DEFAULT_SPEEDS
from cdp.studies.gains import LEXICAL, TRAINING, Gain
from cdp.studies.plan import UNTRAINED
from cdp.studies.report import StudyRow
from cdp.training.plan import complete

MEASURED, NEAREST, PRIOR, NONE = "measured", "nearest", "prior", "none"

# What the published rule says of several different queries against one.
DIRECTION = {"avoid": -1, "test": 0, "recommend": 1}

RUN_THE_TEST = "run the three-minute test"


@dataclass(frozen=True)
class Band:
    """The published prior at one Q/Doc: several diverse queries minus one, in NDCG@10 points, with the 95% interval of
    a new dataset."""

    per_doc: int
    points: float
    low: float
    high: float


@dataclass(frozen=True)
class Answered:
    """The best-known answer. ``standing`` is what it rests on: ``measured`` (a study of this corpus and benchmark),
    ``nearest`` (a study that shares one of them), ``prior`` (the published evidence), ``none``. ``contradiction`` says
    where measurement and prior disagree, empty where they do not. ``band`` is the prior's, whatever the sentence rests
    on; ``conflicts`` are studies (id, name) that say the opposite."""

    standing: str
    sentence: str
    remarks: tuple[str, ...]
    contradiction: str
    options: tuple[Option, ...]
    band: tuple[Band, ...]
    measured: Measured | None = None
    conflicts: tuple[tuple[str, str], ...] = ()
    writer: Writer | None = None

    @property
    def priced_with(self) -> str:
        """Whose prices the options have, and why these, in words."""
        if self.writer is None:
            return ""
        unknown = any(option.unpriced for option in self.options)
        told = ", whose price is not known: add it to the price table on Queries" if unknown else ""
        return f"{self.writer.name} ({self.writer.basis}){told}"

    @property
    def study(self) -> str:
        """The study that the sentence rests on; empty without one."""
        return self.measured.study if self.measured else ""

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "standing": self.standing,
            "sentence": self.sentence,
            "remarks": self.remarks,
            "contradiction": self.contradiction,
            "study": self.study,
            "measured": _as_dict(self.measured) if self.measured else None,
            "options": self.options,
            "writer": self.writer,
            "prior": self.band,
            "conflicts": [study for study, _ in self.conflicts],
        }


def of_task(
    workspace: Workspace, *, corpus: str = "", target: Profiled | None = None, domain: str = "ood", task: str = ""
) -> Answered:
    """``decide`` with the prior for these target queries."""
    prior = target.recommend(domain=domain, task=task) if target is not None else None
    return decide(workspace, corpus=corpus, target=target, prior=prior)


def of_benchmark(workspace: Workspace, corpus: str, benchmark: str, split: str = "") -> Answered:
    """``decide`` for the queries of a benchmark."""
    return of_task(workspace, corpus=corpus, target=complexity.profile_benchmark(workspace, benchmark, split=split))


def decide(
    workspace: Workspace,
    *,
    corpus: str = "",
    target: Profiled | None = None,
    prior: Recommendation | None = None,
    with_options: bool = True,
    chosen: Writer | None = None,
) -> Answered:
    """What is best known for a corpus and the queries of a task.

    ``target`` are its queries and ``prior`` what the published evidence says of them, both None where none are named.
    Prices are those of the ``chosen`` writer, or of the one that the project used last.
    """
    corpus = resolve_corpus(workspace, corpus).id if corpus else ""
    benchmark, _, split = target.benchmark.rpartition(":") if target is not None else ("", "", "")
    candidates = measuring.list_measured(workspace, corpus=corpus, benchmark=benchmark, split=split)
    best = candidates[0] if candidates else None
    writes = writer(workspace, corpus, chosen) if with_options else None
    options = list_options(workspace, corpus, best, writes) if writes else ()
    band = _band(prior)
    if best is None:
        standing, sentence, remarks = _without_measurement(target, prior)
        return Answered(standing, sentence, remarks, "", options, band, writer=writes)
    if target is not None and not benchmark:  # pasted queries, or a query set: no study was judged by them
        best = replace(best, nearness=measuring.CORPUS_ONLY)
    conflicts = tuple((other.study, other.name) for other in measuring.conflicts(best, candidates[1:]))
    exact = best.nearness == measuring.EXACT
    return Answered(
        standing=MEASURED if exact else NEAREST,
        sentence=best.answer.sentence,
        remarks=(*([] if exact else [_not_quite(best)]), *best.answer.remarks),
        contradiction=_contradiction(best, prior) if exact else "",
        options=options,
        band=band,
        measured=best,
        conflicts=conflicts,
        writer=writes,
    )


def _without_measurement(target: Profiled | None, prior: Recommendation | None) -> tuple[str, str, tuple[str, ...]]:
    """(standing, sentence, remarks) from the published evidence alone, as unsure as it is."""
    if target is None or prior is None:
        return NONE, f"Nothing is known of your task yet: {RUN_THE_TEST}.", ()
    hint = f"The published rule alone would say “{prior.level}” at {prior.mean_cw:.1f} content words per query (CW)"
    if prior.n_queries < FEW_QUERIES:
        noun = "query is" if prior.n_queries == 1 else "queries are"
        return (
            NONE,
            f"{prior.n_queries} {noun} too few to tell: {RUN_THE_TEST}, or give {FEW_QUERIES} or more.",
            (f"{hint}, which such a small sample can be by chance.",),
        )
    if target.doubt:
        return NONE, f"{target.doubt} {RUN_THE_TEST[0].upper()}{RUN_THE_TEST[1:]}.", ()
    if prior.scope.outside:
        reasons = "; ".join(prior.scope.outside)
        return NONE, f"No evidence for such a task: {RUN_THE_TEST}.", (f"{hint}, but {reasons}.",)
    weak = " ".join(("Weak evidence, none of it from your data.", *prior.scope.unknown))
    return PRIOR, f"{prior.suggestion.text} {prior.suggestion.sure}", (weak, f"To know: {RUN_THE_TEST}.")


def _not_quite(best: Measured) -> str:
    what = "with queries for another corpus" if best.nearness == measuring.BENCHMARK_ONLY else "by other queries"
    return f"Nearest evidence: this was measured {what}, so it may not hold for yours."


def _contradiction(best: Measured, prior: Recommendation | None) -> str:
    """Where the measurement and the published evidence disagree, in a sentence; empty where they do not."""
    if prior is None:
        return ""
    answer, at = best.answer, f"CW {prior.mean_cw:.1f}"
    if DIRECTION[prior.level] * answer.direction < 0:
        says = "against several different queries" if prior.level == "avoid" else "for several different queries"
        beyond = ", although this task lies outside its evidence" if prior.scope.outside else ""
        return (
            f"The published rule speaks {says} at {at}{beyond}, and your own measurement shows the opposite. Go by the "
            "measurement."
        )
    gain = answer.gain
    if gain is None or gain.comparison != SCALING:
        return ""
    line = next((e for e in prior.expected if (e.comparison, e.per_doc) == (SCALING, gain.per_doc)), None)
    if line is None or line.low <= gain.points <= line.high:
        return ""
    return (
        f"At {at} the published line expects {signed(line.low, 1)} to {signed(line.high, 1)} points for {gain.per_doc} "
        f"queries against one, and {signed(gain.points, 1)} were measured. Go by the measurement."
    )


def _band(prior: Recommendation | None) -> tuple[Band, ...]:
    """What the published evidence expects of diverse queries against one: the line inside its evidence, else the
    datasets most like the task."""
    if prior is None:
        return ()
    line = [e for e in prior.expected if e.comparison == SCALING]
    if prior.scope.inside and line:
        return tuple(Band(e.per_doc, e.points, e.low, e.high) for e in line)
    return tuple(Band(o.per_doc, o.points, o.low, o.high) for o in prior.outlook)


def _as_dict(measured: Measured) -> dict[str, Any]:
    """For ``--json``: the answer with its figures, without the whole report."""
    return {
        "study": measured.study,
        "name": measured.name,
        "nearness": measured.nearness,
        "benchmark": f"{measured.benchmark.name}:{measured.benchmark.split}",
        "retriever": measured.retriever,
        "finished": measured.finished,
        "answer": asdict(measured.answer),
    }


# Numbers of queries that are offered where nothing was measured; one query has a row of its own.
PER_DOC = (2, 3, 5)

# What times are estimated for where no study was run.
RETRIEVER = "static-minilm"

ONE, BM25 = "one", "bm25"
WRITTEN = ("diverse", "paraphrase")
NAMES = {"diverse": "Diverse", "paraphrase": "Paraphrases", "human": "Human queries"}


@dataclass(frozen=True)
class Option:
    """One way to go. ``kind`` is ``untrained``, ``bm25``, or what is trained on; ``held`` as in ``Condition``.

    ``score`` is NDCG@10 in percent, None where it was not measured; ``gain`` the difference to the untrained retriever.
    ``price`` of the whole corpus's queries in US dollars, ``seconds`` of a training on it (``timed``: measured).
    """

    name: str
    kind: str
    per_doc: int
    held: str = ""
    score: float | None = None
    interval: tuple[float, float] | None = None
    gain: Gain | None = None
    documents: int = 0
    pairs: int = 0
    price: float | None = None
    seconds: float | None = None
    timed: bool = False
    unpriced: bool = False

    @property
    def price_text(self) -> str:
        """The price in words: ``none`` where nothing is written, ``free`` where nobody is paid."""
        if not self.per_doc:
            return "none"
        if self.unpriced:
            return "not known"
        return "–" if self.price is None else "free" if self.price == 0 else dollars(self.price)


def list_options(workspace: Workspace, corpus: str, best: Measured | None, writer: Writer) -> tuple[Option, ...]:
    """The untrained retriever, BM25, one query, and paraphrases and diverse queries at several Q/Doc, in that order;
    with what a study measured, and for the corpus where one is named the prices of ``writer`` and times."""
    manifest = None
    if corpus:
        with suppress(CdpError):
            manifest = load_manifest(workspace, corpus)
    rows = {(row.source, row.per_doc, row.held): row for row in best.rows if row.retriever != bm25.NAME} if best else {}
    lexical = next((row for row in best.rows if row.retriever == bm25.NAME), None) if best else None
    rate = _seconds_per_pair(workspace, best)
    options = [
        _measured(Option("Untrained", UNTRAINED, 0, price=0.0, seconds=0.0), rows.get((UNTRAINED, 0, "")), best),
        _measured(Option(bm25.TITLE, BM25, 0, price=0.0, seconds=0.0), lexical, best),
    ]
    for kind, per_doc, held in _trainings(list(rows)):
        row = rows.get((kind, per_doc, held))
        pairs = manifest.n_documents * per_doc if manifest else 0
        timed = row is not None and manifest is not None and not held and row.documents >= manifest.n_documents
        seconds = row.seconds if timed and row else rate * pairs if pairs and rate is not None else None
        priced = manifest is not None and kind in WRITTEN and not held
        price = _price(workspace, manifest, kind, per_doc, writer) if manifest is not None and priced else None
        option = Option(
            name=_name(kind, per_doc, held),
            kind=kind,
            per_doc=per_doc,
            held=held,
            price=price,
            unpriced=priced and price is None,
            seconds=None if held else seconds,
            timed=timed,
        )
        options.append(_measured(option, row, best))
    return tuple(options)


def _trainings(measured: list[tuple[str, int, str]]) -> Iterator[tuple[str, int, str]]:
    """(source, Q/Doc, held) of every row: what was measured, and what could be."""
    trained = [key for key in measured if key[0] != UNTRAINED]
    sources = list(dict.fromkeys(["paraphrase", "diverse", *(source for source, *_ in trained)]))
    ones = [key for key in trained if key[1] == 1] or [("diverse", 1, "")]
    yield from ones
    for source in sources:
        several = sorted({key[1:] for key in trained if key[0] == source and key[1] > 1}, key=lambda key: key[::-1])
        if not several and source in ("paraphrase", "diverse"):
            several = [(per_doc, "") for per_doc in PER_DOC]
        for per_doc, held in several:
            yield source, per_doc, held


def _name(source: str, per_doc: int, held: str) -> str:
    if per_doc == 1:
        return {"diverse": "One query", "paraphrase": "One paraphrase", "human": "One human query"}.get(
            source, f"One query, {source}"
        )
    name = f"{NAMES.get(source, source)} × {per_doc}"
    return f"{name}, {held}" if held else name


def _measured(option: Option, row: StudyRow | None, best: Measured | None) -> Option:
    if row is None or best is None:
        return option
    benchmark = best.benchmark.name
    comparison = LEXICAL if row.retriever == bm25.NAME else TRAINING
    return replace(
        option,
        score=row.scores[benchmark],
        interval=row.intervals.get(benchmark),
        gain=best.gain(row, comparison),
        documents=row.documents,
        pairs=row.pairs,
    )


def _seconds_per_pair(workspace: Workspace, best: Measured | None) -> float | None:
    """How long a training takes per pair: as the study measured it, else by the small retriever's default speed."""
    trained = [row for row in best.rows if row.pairs and row.seconds] if best else []
    if trained:
        largest = max(trained, key=lambda row: row.pairs)
        return largest.seconds / largest.pairs
    if best is not None and best.retriever not in DEFAULT_SPEEDS:
        return None
    settings = complete(TrainingConfig.from_dict({"query_set": "any"}), resolve(RETRIEVER, workspace))
    return (settings.epochs or 1) / DEFAULT_SPEEDS[RETRIEVER].pairs_per_second


def _price(workspace: Workspace, manifest: CorpusManifest, method: str, per_doc: int, writer: Writer) -> float | None:
    """What it costs to have the queries of a whole corpus written; kept until the corpus or the prices change."""
    if writer.free:
        return 0.0
    values = {"corpus": manifest.id, "method": method, "per_doc": per_doc, **writer.settings}
    question = ("price", method, per_doc, *writer.settings.values(), synthesis.read_prices(workspace))

    def compute() -> float | None:
        with suppress(CdpError):
            return synthesis.estimate(workspace, SynthesisConfig.from_dict(values)).cost
        return None

    return ANSWERS.get(workspace.corpora / manifest.id, question, compute)


def next_study(target: Profiled, answer: Recommendation, corpus: str = "") -> tuple[dict[str, str], str]:
    """Return the changes to the ready-made plan that would settle a recommendation, and the command that plans it."""
    values = {**answer.experiment.changes, "methods": "diverse", "benchmarks": target.benchmark, "corpus": corpus}
    if target.language != "en":
        values["language"] = target.language
    settings = {name: value for name, value in values.items() if value}
    return settings, commands.line("study", "plan", answer.plan, set=[f"{n}={value}" for n, value in settings.items()])
