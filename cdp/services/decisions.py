"""What a user can choose from, with what each choice scored, costs and takes: the table under the decision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from cdp.base.config import SynthesisConfig, TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest, load_manifest
from cdp.evaluation import bm25
from cdp.principle import Recommendation
from cdp.retrievers import resolve
from cdp.services import commands, synthesis
from cdp.services.complexity import Profiled
from cdp.services.measured import Measured
from cdp.services.studies import Gain
from cdp.services.synthesis import Writer, dollars
from cdp.studies.estimate import DEFAULT_SPEEDS
from cdp.studies.gains import LEXICAL, TRAINING
from cdp.studies.plan import UNTRAINED
from cdp.studies.report import StudyRow
from cdp.training.plan import complete

PER_DOC = (2, 3, 5)
"""Numbers of queries that are offered where nothing was measured; one query has a row of its own."""

RETRIEVER = "static-minilm"
"""What times are estimated for where no study was run."""

ONE, BM25 = "one", "bm25"
WRITTEN = ("diverse", "paraphrase")
NAMES = {"diverse": "Diverse", "paraphrase": "Paraphrases", "human": "Human queries"}


@dataclass(frozen=True)
class Option:
    """One way to go. ``kind`` is ``untrained``, ``bm25``, or what is trained on; ``held`` as in ``Condition``.

    ``score`` is NDCG@10 in percent with its 95% ``interval``, None where it was not measured; ``gain`` the difference
    to the untrained retriever. ``price`` is that of the whole corpus's queries in US dollars, None where none are
    written or where the model has none (``unpriced``); ``seconds`` the training on the whole corpus, ``timed`` whether
    it was measured on it.
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
    return Option(
        **{
            **{name: getattr(option, name) for name in option.__dataclass_fields__},
            "score": row.scores[benchmark],
            "interval": row.intervals.get(benchmark),
            "gain": best.gain(row, comparison),
            "documents": row.documents,
            "pairs": row.pairs,
        }
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
