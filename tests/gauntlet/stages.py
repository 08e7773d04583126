"""One collection from its files to what other programs read: every stage, in the order in which a user meets them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gauntlet.corpora import Collection
from tests.gauntlet.typed import Clock, Terminal

METHODS = ("diverse", "paraphrase")
PER_DOC = (1, 3)
RETRIEVER = "static-minilm"
# The measures that need a model look at so many documents of a set; the quick ones at all.
MEASURED_DOCUMENTS = 100

QUERY_FORMATS = ("beir", "sentence-transformers", "flagembedding", "beir")
OWN = "its own"


@dataclass
class Row:
    """One query set of one collection, and what came of it. None: not measured, or nothing to measure by."""

    collection: str
    language: str
    queries_of: str
    documents: int
    rejected: int
    queries: int = 0
    failed: int = 0
    short: int = 0
    """Documents with fewer queries than asked for."""
    self_bleu: float | None = None
    cw: float | None = None
    paraphrase_ratio: float | None = None
    dist_sim: float | None = None
    pairs: int | None = None
    left_out: int | None = None
    """Queries that the generator wrote by chance as the benchmark judges them: they are not trained on."""
    bm25: float | None = None
    before: float | None = None
    after: float | None = None
    seconds: float = 0.0


class Course:
    """The way of one collection. What fails is kept in ``typed.faults``, and the next query set is tried."""

    def __init__(self, typed: Terminal, collection: Collection, out: Path) -> None:
        self.typed, self.collection, self.out = typed, collection, out
        self.corpus: dict[str, Any] = {}
        self.query_sets: list[str] = []

    def cdp(self, *words: str) -> Any:
        return self.typed(self.collection.name, *words)

    def rows(self) -> Iterator[Row]:
        """Each row as it is done."""
        if not self._added():
            return
        if self.collection.judged:
            yield from self._judged()
        else:
            yield self._own()
            # Documents that are a benchmark's too had their queries written there.
            if not self.corpus["existed"]:
                for method in METHODS:
                    for per_doc in PER_DOC:
                        yield self._written(method, per_doc, train=(method, per_doc) == (METHODS[0], PER_DOC[-1]))

    def row_without_models(self) -> Row | None:
        """Only what needs no model: one method, added, written, measured and exported; nothing is trained."""
        if not self._added():
            return None
        return self._written(METHODS[0], PER_DOC[-1], train=False, models=False)

    def _added(self) -> bool:
        self.corpus = self.cdp("corpus", "add", str(self.collection.path)) or {}
        if self.corpus and self.collection.judged:
            self.cdp("benchmarks", "add", str(self.collection.path))
        return bool(self.corpus)

    def _judged(self) -> Iterator[Row]:
        name, split = self.collection.name, self.collection.split
        scores = [
            self.cdp("evaluate", retriever, "--benchmark", name, "--split", split, "--wait")
            for retriever in (RETRIEVER, f"bm25:{self.collection.language}")
        ]
        for method in METHODS:
            for per_doc in PER_DOC:
                row = self._written(method, per_doc, train=True)
                row.before, row.bm25 = (score and score["ndcg@10"] for score in scores)
                yield row

    def _own(self) -> Row:
        """The queries that came with the documents, brought in a second time by the command for queries alone."""
        clock, row = Clock(), self._row(OWN)
        imported = self.cdp(
            "queries", "import", str(self.collection.path), "--corpus", self.corpus["id"],
            "--name", f"{self.collection.name} imported",
        )  # fmt: skip
        shown = self.cdp("queries", "show", self.corpus["query_set"])
        if imported and shown:
            row.queries = shown["n_queries"]
            if imported["content_hash"] != shown["content_hash"]:
                self._fault(f"queries import gave {imported['n_queries']} queries, corpus add {row.queries}")
            self._used(row, imported["id"], "beir", train=True, models=True)
        row.seconds = clock.seconds
        return row

    def _written(self, method: str, per_doc: int, *, train: bool, models: bool = True) -> Row:
        clock, row = Clock(), self._row(f"{method} × {per_doc}")
        done = self.cdp(
            "queries", "generate", "--corpus", self.corpus["id"], "--method", method, "--per-doc", str(per_doc),
            "--generator", "template", "--set", f"name={self.collection.name} {method} {per_doc}", "--wait",
        )  # fmt: skip
        if done is not None:
            row.queries, row.failed, row.short = done["n_queries"], done["failures"], done["incomplete"]
            if row.failed or not done["complete"]:
                self._fault(f"{row.queries_of}: {row.failed} documents failed, complete: {done['complete']}")
            place = METHODS.index(method) * len(PER_DOC) + PER_DOC.index(per_doc)
            self._used(row, done["query_set"], QUERY_FORMATS[place], train=train, models=models and per_doc > 1)
        row.seconds = clock.seconds
        return row

    def _used(self, row: Row, query_set: str, form: str, *, train: bool, models: bool) -> None:
        """Measured, trained on, compared where there are judgments, and exported."""
        self.query_sets.append(query_set)
        self._measured(row, query_set, models)
        if train:
            self._trained(row, query_set)
        target = self.out / f"{query_set}-{form}"
        self.cdp("queries", "export", query_set, "--format", form, "--out", str(target))
        self._expect(target)

    def _measured(self, row: Row, query_set: str, models: bool) -> None:
        own = self.corpus.get("query_set") or ""
        human = ("--human", own) if own and row.queries_of != OWN else ()
        quick = self.cdp("metrics", query_set, "--quick", *human)
        if quick is not None:
            row.self_bleu, row.cw = (_value(quick["measures"], name) for name in ("self_bleu", "cw"))
        if models:
            found = self.cdp("metrics", query_set, *human, "--set", f"max_documents={MEASURED_DOCUMENTS}", "--wait")
            if found is not None:
                measures = found.get("measures", [])
                row.dist_sim = _value(measures, "dist_sim")
                row.paraphrase_ratio = _value(measures, "paraphrase_ratio", "paraphrase_ratio_bi_encoder")

    def _trained(self, row: Row, query_set: str) -> None:
        name, judged = self.collection.name, self.collection.judged
        wanted: tuple[str, ...] = ()
        if judged:
            split = f"{name}:{self.collection.split}"
            wanted = ("--evaluate", split)
            usable = self.cdp("queries", "leave-out", query_set, "--judged-by", split)
            if usable is None:
                return
            query_set, row.left_out = usable["id"], usable["left_out"]
        trained = self.cdp("train", query_set, "--retriever", RETRIEVER, *wanted, "--wait")
        if trained is None:
            return
        row.pairs = trained["pairs"]
        if judged:
            compared = self.cdp("results", "compare", "--baseline", RETRIEVER, "--benchmark", name)
            rows = {r["retriever_id"]: r for r in compared["rows"]} if compared else {}
            if trained["id"] in rows:
                row.after = rows[trained["id"]]["ndcg"]
            else:
                self._fault(f"{trained['id']} is not in the comparison")
        # A trained model with its optimiser takes 180 MB, and there are dozens; its scores stay.
        self.cdp("jobs", "delete", trained["id"], "--yes")

    def _row(self, queries_of: str) -> Row:
        rejected = sum(self.corpus["rejected_counts"].values())
        return Row(self.collection.name, self.collection.language, queries_of, self.corpus["n_documents"], rejected)

    def _expect(self, target: Path) -> None:
        if not target.exists():
            self._fault(f"{target.name} was not written")

    def _fault(self, said: str) -> None:
        self.typed.fault(self.collection.name, (), said)


def _value(measures: list[dict[str, Any]], *names: str) -> float | None:
    """The first measure of one of these names: over each document's queries."""
    return next((m["value"] for m in measures if m["name"] in names), None)
