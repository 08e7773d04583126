"""One function per stage: its work, who shares it, what it holds and sends, with the arithmetic in words.

Bytes follow from the formats on disk and in memory. Where a formula counts only a part of what a process holds, its
line says "at least".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cdp.base.texts import HELD_CHARACTERS
from cdp.planning.quantities import HOUR, short_count
from cdp.planning.rates import Rate, Span
from cdp.planning.timing import Setting, Share, Work, timed
from cdp.planning.workload import CPU, GPU, Workload

ID_BYTES = 24
"""What an import remembers of each document's id (``corpus/seen.py``)."""

STRING_BYTES = 49
"""What CPython adds to every text of one byte per character."""

FILED_BYTES = 40
"""Of a document whose text lies in a file (``base/texts.py``): where it and its id end, and what is known of the id."""

VECTOR_BYTES = {CPU: 4, GPU: 2}
"""Of a dimension: embeddings are kept as they are computed, in half precision on a GPU."""

TRAINED_BYTES = 16
"""Of a parameter in fp32: itself, its gradient, AdamW's two moments."""

TOKEN_BYTES = 8
"""A token id in a training's memory."""

CHARACTERS_PER_TOKEN = 4
"""Of English, as prices are estimated; about a byte each."""

HIT_BYTES = 12
"""A shard's answer to a query, per document: a float32 score and an int64 number."""

LINE_BYTES = 130
"""Of a line of ``queries.jsonl`` besides the queries: the document's id, hashes, keys, punctuation."""

CHUNK_ROWS = 8192
"""Documents that a search holds at a time (``retrievers/exact_search/``)."""


@dataclass(frozen=True)
class Sizes:
    """Bytes: held by one machine (None where nobody knows), kept on disk, sent between machines or to an endpoint."""

    memory: float | None = None
    storage: float = 0.0
    network: float = 0.0


@dataclass(frozen=True)
class Stage:
    """One stage. ``span`` is None where nobody knows its rate. ``dollars`` is an endpoint's price and the machines', as
    far as they are known; ``priced`` says whether that is all."""

    name: str
    title: str
    workers: int
    span: Span | None
    rate: Rate | None
    dollars: float
    priced: bool
    sizes: Sizes
    arithmetic: tuple[str, ...]
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def basis(self) -> str:
        """What its rate rests on, in words."""
        return "unknown" if self.rate is None else str(self.rate.basis)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "basis": self.basis}


def _stage(
    s: Setting,
    name: str,
    title: str,
    work: Work,
    share: Share,
    rate: Rate | None,
    sizes: Sizes,
    *,
    lines: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    dollars: float | None = 0.0,
) -> Stage:
    first = f"work: {work.how}"
    hourly = s.hardware.dollars_per_hour
    if rate is None:
        unknown = (
            "time: unknown, for no rate of it was measured or published. Measure here (--measure), or name yours: "
            f"--rates {name}=… ({UNITS[name]} per second of one worker)"
        )
        priced = dollars is not None and hourly is None
        arithmetic = (first, unknown, *lines)
        return Stage(name, title, share.workers, None, None, dollars or 0.0, priced, sizes, arithmetic, notes)
    result = timed(s, work, share, rate)
    paid = dollars or 0.0
    if hourly is not None:
        hours = result.span.seconds / HOUR
        machines = s.hardware.machines
        lines += (f"machines: {machines:,} × ${hourly:,.2f} an hour × {short_count(hours)} h",)
        paid += hourly * machines * hours
    arithmetic, doubts = (first, *result.lines, *lines), (*result.doubts, *notes)
    priced = dollars is not None
    return Stage(name, title, share.workers, result.span, rate, paid, priced, sizes, arithmetic, doubts)


def reading(s: Setting) -> Stage:
    w, ratio = s.work, s.rates.get("size/corpus")
    stored = (
        f"{ratio.value:.2f} bytes per character, {ratio.basis}" if ratio else "at most a byte per character, as Parquet"
    )
    return _stage(
        s,
        "reading",
        "Reading documents",
        Work(w.text, f"{short_count(w.documents)} documents × {w.characters:,.0f} = {short_count(w.text)} characters"),
        Share(),
        s.rate("reading"),
        Sizes(float(ID_BYTES * w.documents), w.text * (ratio.value if ratio else 1.0)),
        lines=(f"memory: at least {ID_BYTES} bytes per id", f"storage: {stored}"),
        notes=("One process reads a corpus, on one machine.",) if s.hardware.machines > 1 else (),
    )


def synthesis(s: Setting) -> Stage:
    w, by = s.work, s.work.writer
    device = s.hardware.device if by.kind == "device" else CPU
    share = Share()
    if by.kind == "processor":
        share = Share(by.processes * s.hardware.machines, "processor")
    elif by.kind == "device":
        share = _devices(s)
    kept = w.documents * LINE_BYTES + w.pairs * w.query_characters * (2 if by.requests else 1)
    sent = CHARACTERS_PER_TOKEN * (by.input_tokens + by.output_tokens) if by.kind == "endpoint" else 0
    lines = [f"storage: {LINE_BYTES} bytes per document + {w.query_characters:,.0f} per query"]
    if by.requests:
        lines[0] += ", twice: the answers are cached"
        lines.append(
            f"tokens: {short_count(by.input_tokens)} in and {short_count(by.output_tokens)} out, in "
            f"{short_count(by.requests)} requests"
        )
    lines += [f"price: {by.price}"] if by.price else []
    lines += [f"network: {CHARACTERS_PER_TOKEN} bytes per token, both ways"] if sent else []
    how = f"{short_count(w.documents)} documents, {w.per_doc} queries each = {short_count(w.pairs)} queries"
    return _stage(
        s,
        "synthesis",
        "Writing queries",
        Work(float(w.documents), how, w.characters if by.kind == "processor" else 0.0, job=True),
        share,
        s.rate("synthesis", f"synthesis/{by.name}/{device}"),
        Sizes(None, kept, float(sent)),
        lines=tuple(lines),
        dollars=by.dollars,
    )


def measures(s: Setting) -> Stage:
    w, notes = s.work, []
    told = s.rate("measures", f"measures/{w.per_doc}")
    depths = sorted((int(key.partition("/")[2]) for key in s.rates if key.startswith("measures/")), reverse=True)
    depth = next((d for d in depths if d < w.per_doc), depths[-1] if depths else w.per_doc)
    # Self-BLEU compares each query with all others of its document: twice as many take twice as long, each.
    times = 1.0 if told else max(1.0, w.per_doc / depth)
    if told is None and depth != w.per_doc:
        notes.append(f"Measured at Q/Doc {depth} and taken in proportion: a model.")
    compared = short_count(w.documents * w.per_doc * (w.per_doc - 1) / 2)
    notes.append(f"Self-BLEU and CW. CE would score {compared} pairs of queries by a model: not counted.")
    return _stage(
        s,
        "measures",
        "Q-D measures",
        Work(w.pairs * times, f"{short_count(w.documents)} documents × {w.per_doc} = {short_count(w.pairs)} queries"),
        Share(),
        told or s.rate(f"measures/{depth}"),
        Sizes(None, 24.0 * w.documents),
        lines=("storage: three values of 8 bytes per document",),
        notes=tuple(notes),
    )


def encoding(s: Setting) -> Stage:
    w, model, machines = s.work, s.work.model, s.hardware.machines
    size = VECTOR_BYTES[s.hardware.device]
    held = _texts_held(w) + 4.0 * model.n_parameters
    return _stage(
        s,
        "encoding",
        "Encoding documents",
        Work(float(w.documents), f"{short_count(w.documents)} texts", w.characters, job=True),
        _devices(s),
        s.rate("encoding", f"encoding/{model.name}/{s.hardware.device}"),
        Sizes(held, float(size * w.documents * model.dimensions), w.text if machines > 1 else 0.0),
        lines=(
            f"memory: at least the texts, {STRING_BYTES} bytes more for each (from {short_count(HELD_CHARACTERS)} "
            f"characters on the others lie in a file, and take {FILED_BYTES} bytes each), and the model",
            f"storage: {short_count(w.documents)} × {model.dimensions} dimensions × {size} bytes",
        ),
        notes=()
        if model.dimensions
        else ("The retriever's dimensions are not known, so its vectors are not counted.",),
    )


def training(s: Setting) -> Stage:
    w, model = s.work, s.work.model
    share = _devices(s) if s.hardware.gpus else Share(1, "machine", every_processor=True)
    seen, n = float(w.pairs * model.epochs), share.workers
    texts = w.text + w.pairs * w.query_characters
    held = texts + STRING_BYTES * (w.documents + w.pairs) + texts / CHARACTERS_PER_TOKEN * TOKEN_BYTES
    steps = -(-seen // max(1, model.batch_size * n))
    across = s.hardware.machines > 1 and n > 1
    sent = 2 * (n - 1) * 4.0 * model.n_parameters * steps if across else 0.0
    lines = [
        f"memory: at least the texts, {TOKEN_BYTES} bytes per token, {TRAINED_BYTES} per parameter; a batch's share is "
        "what Launch measures"
    ]
    if across:
        lines.append(
            f"network: {short_count(steps)} steps × 2 × ({n} − 1) × 4 bytes × {short_count(model.n_parameters)}"
        )
    idle = s.hardware.machines > 1 and n == 1
    return _stage(
        s,
        "training",
        f"Training {model.name}",
        Work(
            seen, f"{short_count(w.pairs)} pairs × {model.epochs} epochs = {short_count(seen)}", w.characters, job=True
        ),
        share,
        s.rate("training", f"training/{model.name}/{s.hardware.device}"),
        Sizes(held + TRAINED_BYTES * model.n_parameters, 4.0 * model.n_parameters, sent),
        lines=tuple(lines),
        notes=("Without GPUs one machine trains; the others are idle.",) if idle else (),
    )


def search(s: Setting) -> Stage:
    w, size = s.work, s.work.model.dimensions
    products, shards = float(w.documents) * w.queries * size, s.hardware.devices
    lines = [f"memory: {CHUNK_ROWS:,} documents in float32 at a time, and the queries with their best {w.top_k}"]
    if s.hardware.machines > 1:
        lines.append(f"network: {shards:,} shards × {w.queries:,} queries × {w.top_k} × {HIT_BYTES} bytes")
    how = f"{short_count(w.documents)} documents × {w.queries:,} queries × {size} dimensions = {short_count(products)}"
    return _stage(
        s,
        "search",
        "Exact search",
        Work(products, f"{how} multiply-adds"),
        _devices(s),
        s.rate("search", f"search/{s.hardware.device}") if size else None,
        Sizes(
            CHUNK_ROWS * size * 4.0 + w.queries * (4.0 * size + HIT_BYTES * w.top_k),
            float(w.queries * w.top_k * HIT_BYTES),
            float(shards * w.queries * w.top_k * HIT_BYTES) if s.hardware.machines > 1 else 0.0,
        ),
        lines=tuple(lines),
    )


def bm25(s: Setting) -> Stage:
    w, size, machines = s.work, s.rates.get("size/bm25"), s.hardware.machines
    index = w.text * size.value if size else 0.0
    what = f"{size.value:.2f} bytes of index per character, {size.basis}" if size else "the index itself is not known"
    return _stage(
        s,
        "bm25",
        "BM25 index",
        Work(
            w.text, f"{short_count(w.documents)} documents × {w.characters:,.0f} = {short_count(w.text)} characters",
            job=True,
        ),
        Share(machines, "machine"),
        s.rate("bm25"),
        Sizes(index / machines + _texts_held(w), index),
        lines=(f"memory: at least the index, and the texts as for encoding; {what}",),
    )  # fmt: skip


def _texts_held(w: Workload) -> float:
    """Bytes of a collection's texts in the memory of the process that reads it, at the most."""
    if w.text <= HELD_CHARACTERS:
        return w.text + STRING_BYTES * w.documents
    return HELD_CHARACTERS * (1 + STRING_BYTES / w.characters) + FILED_BYTES * w.documents


def _devices(s: Setting) -> Share:
    """Every GPU, or else every machine with all its processors."""
    return Share(s.hardware.devices, "GPU" if s.hardware.gpus else "machine", every_processor=not s.hardware.gpus)


STAGES: Mapping[str, Callable[[Setting], Stage]] = {
    "reading": reading,
    "synthesis": synthesis,
    "measures": measures,
    "encoding": encoding,
    "training": training,
    "search": search,
    "bm25": bm25,
}
"""Every stage, in the order of a run."""

UNITS: Mapping[str, str] = {
    "reading": "characters",
    "synthesis": "documents",
    "measures": "queries",
    "encoding": "texts",
    "training": "pairs",
    "search": "multiply-adds",
    "bm25": "characters",
}
"""What each stage's rate counts, per second."""
