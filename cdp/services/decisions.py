"""What a user can choose from, with what each choice scored, costs and takes: the table under the decision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from cdp.base.config import SynthesisConfig, TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.file_cache import ANSWERS
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest, load_manifest, resolve_corpus
from cdp.evaluation import bm25
from cdp.llm import prices
from cdp.llm.tokens import estimate_tokens
from cdp.principle import Recommendation
from cdp.retrievers import resolve
from cdp.services import commands, synthesis
from cdp.services.complexity import Profiled
from cdp.services.measured import Measured
from cdp.services.studies import Gain
from cdp.services.synthesis import EXAMPLE, Writer, dollars, writer
from cdp.studies import StudyConfig
from cdp.studies.estimate import DEFAULT_SPEEDS
from cdp.studies.gains import LEXICAL, TRAINING
from cdp.studies.plan import UNTRAINED
from cdp.studies.report import StudyRow
from cdp.synthesis.estimate import expected_usage
from cdp.synthesis.methods import get_method
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


TYPICAL_WORDS = 120
"""Words of a document where none is named: about a paragraph of an encyclopaedia."""
PER = 1000


@dataclass(frozen=True)
class Decision:
    """``sentence`` is what to act on: which, how many, at what price, how sure, and what would settle it.

    ``price`` is in words, ``settings`` the changes to the ready-made plan ``plan`` for ``study plan``, ``command`` that
    command. ``missing`` says what the study still lacks, in a sentence; empty where it can start.
    """

    sentence: str
    price: str
    plan: str
    settings: dict[str, str]
    command: str
    missing: str


def decide(
    workspace: Workspace, queries: Profiled, answer: Recommendation, *, corpus: str = "", chosen: Writer | None = None
) -> Decision:
    """Price and experiment of a recommendation for these target queries, on a corpus if one is named; for the
    ``chosen`` writer, or the one that was used last."""
    manifest = resolve_corpus(workspace, corpus) if corpus else None
    writes = writer(workspace, manifest.id if manifest else "", chosen)
    price = _priced(workspace, answer, manifest, writes)
    settings: dict[str, str] = dict(answer.experiment.changes)
    settings |= {"methods": "diverse", "benchmarks": queries.benchmark}
    if manifest is not None:
        offered = writes.generator in StudyConfig.settings()["generator"].choices
        settings |= {"corpus": manifest.id, **(writes if offered else Writer.of({"generator": EXAMPLE})).settings}
    if queries.language != "en":
        settings["language"] = queries.language
    lacking = [
        *([] if manifest else ["a corpus to write queries for"]),
        *([] if queries.benchmark else ["a benchmark: queries of your task with judgments"]),
    ]
    given = {name: value for name, value in settings.items() if value}
    sentence = f"{answer.suggestion.text} {price} {answer.suggestion.sure} To settle it: {answer.experiment.text}"
    return Decision(
        sentence=" ".join(sentence.split()),
        price=price,
        plan=answer.plan,
        settings=given,
        command=commands.line("study", "plan", answer.plan, set=[f"{name}={value}" for name, value in given.items()]),
        missing=f"It still needs {' and '.join(lacking)}." if lacking else "",
    )


def _priced(workspace: Workspace, answer: Recommendation, manifest: CorpusManifest | None, writes: Writer) -> str:
    """What the suggested queries cost, in words."""
    if writes.free:
        return f"Price: free, with {writes.name} ({writes.basis})."
    per_doc = answer.suggestion.per_doc
    by = f"with {writes.model} ({writes.basis})"
    try:
        if manifest is not None:
            documents = min(answer.suggestion.documents or manifest.n_documents, manifest.n_documents)
            values = {"corpus": manifest.id, "method": "diverse", "per_doc": per_doc, **writes.settings}
            estimate = synthesis.estimate(workspace, SynthesisConfig.from_dict({**values, "limit": documents}))
            if estimate.cost is None:
                return f"The price is not known: the price table has no {writes.model}."
            noun = "document" if documents == 1 else "documents"
            return f"Price: about {prices.dollars(estimate.cost)} {by} for {documents:,} {noun} of {manifest.name}."
        price = prices.load_price(writes.model, prices.price_file(workspace))
    except CdpError as error:
        return f"The price is not known: {error.message.rstrip('.')}."
    if price is None:
        return f"The price is not known: the price table has no {writes.model}."
    method = get_method("diverse")
    text = Document("typical", "paragraph " * TYPICAL_WORDS).content
    usage = expected_usage(method, estimate_tokens(method.render(text, per_doc)), PER, PER * per_doc)
    return f"Price: about {prices.dollars(price.cost(usage))} {by} per {PER:,} documents of {TYPICAL_WORDS} words."
