"""How many documents a second get template queries, on all processors against one?

SciFact's abstracts where ../shared/data is there, else the demo's documents over and over; 3 queries per document. The
queries of both sides are compared before any time is taken.

    python -m perf.template_rate
"""

from __future__ import annotations

import dataclasses
import gzip
import json
from concurrent.futures import ThreadPoolExecutor

from cdp.base.records import Document
from cdp.base.workspace import REPOSITORY, SHIPPED_DATA
from cdp.synthesis.generators import Generator
from cdp.synthesis.generators.template import TemplateGenerator, processors, spread
from cdp.synthesis.methods import METHODS
from perf.timing import Row, compare, show

DOCUMENTS = 500
QUERIES = 3
SCIFACT = REPOSITORY.parent / "shared" / "data" / "scifact" / "corpus.jsonl.gz"


def run() -> list[Row]:
    """A row per method; by as many as there are processors would be ideal."""
    documents, one, rows = some_documents(), TemplateGenerator(), []
    with spread(one, 10**6) as every:
        for method in ("diverse", "paraphrase"):
            assert written(every, documents, method) == written(one, documents, method)
            rows.append(
                compare(
                    f"template queries, {method}, {processors()} processors against 1",
                    lambda method=method: written(every, documents, method),
                    lambda method=method: written(one, documents, method),
                    amount=len(documents),
                    unit="documents",
                    target=1.0,
                    repeats=3,
                )
            )
    show(rows)
    return rows


def written(source: Generator, documents: list[Document], method: str) -> list[tuple[str, ...] | None]:
    """The queries of each document."""

    def queries(document: Document) -> tuple[str, ...] | None:
        return source.generate("", document, METHODS[method], QUERIES).queries

    if source.concurrency == 1:
        return list(map(queries, documents))
    with ThreadPoolExecutor(source.concurrency) as pool:
        return list(pool.map(queries, documents))


def some_documents() -> list[Document]:
    path = SCIFACT if SCIFACT.exists() else SHIPPED_DATA / "demo" / "corpus.jsonl"
    data = path.read_bytes()
    rows = list(map(json.loads, (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()))
    documents = [Document(id=row["_id"], title=row.get("title", ""), text=row["text"]) for row in rows[:DOCUMENTS]]
    # The demo has fewer.
    return [dataclasses.replace(documents[n % len(documents)], id=str(n)) for n in range(DOCUMENTS)]


if __name__ == "__main__":
    run()
