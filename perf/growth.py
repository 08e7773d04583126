"""How does each stage grow with ten times the documents, ten times the queries, four times the queries per document?

The exponent of a power law, fitted to the CPU seconds of three sizes (the smallest, the largest and the one between
them): 1 is as much more work as there is more data, 2 its square. None may be above 1.1, but for the pairs of queries
within a document, whose number is a square by itself. A fixed cost of a stage makes its exponent
smaller; the sizes are such that it is a small part. Median and spread are over repeats of all three sizes.

    python -m perf growth
"""

from __future__ import annotations

import random
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from perf.timing import Row, cpu_seconds, of_ratios, show

LIMIT = 1.1
PAIRS_LIMIT = 2.1
REPEATS = 3
DIM = 64

# From a size to what is timed at that size: what the latter needs is made before.
Work = Callable[[int], Callable[[], object]]


def run(scale: float = 1.0, repeats: int = REPEATS) -> list[Row]:
    """A row per stage. ``scale`` makes every size smaller, for a test that all of them still run."""
    rows = []
    with stages() as made:
        for name, (smallest, times, work) in made.items():
            base = max(2, round(smallest * scale)) if smallest > 20 else smallest
            sizes = [base, round(base * times**0.5), base * times]
            limit = PAIRS_LIMIT if "pairs within" in name else LIMIT
            rows.append(row(f"{name}, times {times}", sizes, work, limit, repeats))
    show(rows)
    return rows


def row(name: str, sizes: list[int], work: Work, limit: float, repeats: int) -> Row:
    """The exponent against its limit; the ratio is above 1 below the limit."""
    calls = [work(size) for size in sizes]
    calls[0]()
    slopes = [
        float(np.polyfit(np.log(sizes), np.log([max(1e-6, cpu_seconds(call)) for call in calls]), 1)[0])
        for _ in range(repeats)
    ]

    margins = [limit / max(slope, 0.01) for slope in slopes]
    return {
        "name": f"growth of {name}",
        "ours": statistics.median(slopes),
        "peer": limit,
        "unit": "exponent",
        "target": 1.0,
        **of_ratios(margins),
    }


@contextmanager
def stages() -> Iterator[dict[str, tuple[int, int, Work]]]:
    """Per stage its smallest size, how many times as large the largest is, and its work."""
    from cdp.base.records import Document
    from cdp.base.workspace import Workspace
    from cdp.complexity import count_content_words
    from cdp.corpus import read_documents
    from cdp.evaluation import search
    from cdp.evaluation.measures import compute, from_ranking
    from cdp.metrics.query_set import measure_query_set
    from cdp.retrievers import bm25, load, resolve
    from cdp.retrievers.encode import Encoding, encode
    from cdp.synthesis.generators.template import TemplateGenerator
    from cdp.synthesis.methods import METHODS
    from cdp.training.pairs import BatchOrder
    from cdp.training.tokens import tokenise
    from perf.reading import write

    words, vectors = Words(), np.random.default_rng(0).standard_normal((400_000, DIM), dtype=np.float32)
    model = load(resolve("static-minilm", Workspace.default()), "cpu")

    def template(documents: int, per_document: int) -> Callable[[], object]:
        source, given = TemplateGenerator(), [Document(str(i), words.sentences(6)) for i in range(documents)]
        return lambda: [source.generate("", document, METHODS["diverse"], per_document) for document in given]

    def measured(documents: int, per_document: int) -> Callable[[], object]:
        given = [(str(i), words.queries(per_document)) for i in range(documents)]
        return lambda: measure_query_set(given)

    def searched(queries: int, documents: int) -> Callable[[], object]:
        return partial(search, vectors[-queries:], vectors[:documents], 10)

    def lexical(queries: int) -> Callable[[], object]:
        index, given = bm25.index([words.sentences(5) for _ in range(2000)]), words.queries(queries)
        return lambda: bm25.rank(index, given, 100)

    def indexed(documents: int) -> Callable[[], object]:
        given = [words.sentences(5) for _ in range(documents)]
        return lambda: bm25.index(given)

    def judged(queries: int) -> Callable[[], object]:
        ranks, names = np.random.default_rng(1).integers(0, 10**6, (queries, 100)), [str(i) for i in range(queries)]
        asked, judged = np.repeat(np.arange(queries), 3), ranks[:, :3].reshape(-1)
        return lambda: compute(from_ranking(ranks, names, asked, judged, np.ones(3 * queries, np.int64)), ["ndcg@10"])

    with tempfile.TemporaryDirectory() as folder:

        def read(documents: int) -> Callable[[], object]:
            path = Path(folder) / f"{documents}.jsonl"
            write(path, documents)
            return lambda: read_documents(path, scratch=Path(folder)).close()

        yield {
            "reading, documents": (5_000, 10, read),
            "template queries, documents": (100, 10, partial(template, per_document=3)),
            "template queries, queries per document": (5, 4, lambda m: template(100, m)),
            "Q-D measures, documents": (200, 10, partial(measured, per_document=5)),
            "Q-D measures, queries per document": (5, 4, lambda m: measured(300, m)),
            "content words, queries": (8_000, 10, lambda n: partial(count_content_words, words.queries(n))),
            "encoding, documents": (
                1_000, 10,
                lambda n: partial(encode, model, [words.sentences(5) for _ in range(n)], Encoding("", "document")),
            ),
            "exact search, documents": (30_000, 10, lambda n: searched(100, n)),
            "exact search, queries": (100, 10, lambda n: searched(n, 50_000)),
            "BM25's index, documents": (500, 10, indexed),
            "BM25, queries": (150, 10, lexical),
            "NDCG@10, queries": (8_000, 10, judged),
            "tokenising for training, pairs": (
                2_000, 10, lambda n: partial(tokenise, model, [words.sentences(2) for _ in range(n)]),
            ),
            "the order of batches, pairs": (
                100_000, 10, lambda n: lambda: [rows.sum() for rows in BatchOrder(n, 128, 3).batches()],
            ),
        }  # fmt: skip


class Words:
    """Texts of words as frequent as in real ones, the same in each run."""

    def __init__(self) -> None:
        from cdp.base.workspace import SHIPPED_DATA, read_jsonl

        texts = [str(line["text"]) for line in read_jsonl(SHIPPED_DATA / "demo" / "corpus.jsonl")]
        self._words = [word for text in texts for word in text.replace(".", "").split()]
        self._draw = random.Random(0)

    def queries(self, n: int) -> list[str]:
        return [" ".join(self._draw.choices(self._words, k=9)) + "?" for _ in range(n)]

    def sentences(self, n: int) -> str:
        return " ".join(f"{' '.join(self._draw.choices(self._words, k=14)).capitalize()}." for _ in range(n))


if __name__ == "__main__":
    run()
