"""How much faster than NLTK is Self-BLEU, for one document's queries on one core?

NLTK computes ``sentence_bleu`` of each query against all others with smoothing method 1; both sides start from texts
and use the same tokens, and their values are compared to 1e-12 before any time is taken. Queries are the demo
collection's recorded ones (diverse and paraphrase of one document, filled up from the next).

    python -m perf.self_bleu
"""

from __future__ import annotations

import json
import statistics

from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from cdp.base.workspace import SHIPPED_DATA
from cdp.metrics import self_bleu
from cdp.metrics.measures import tokens
from perf.timing import Row, compare, show

TARGET = 20.0
DOCUMENTS = 12
METHOD1 = SmoothingFunction().method1


def run() -> list[Row]:
    """Rows at M = 2, 5, 10 and 20; the target holds for M = 20."""
    rows = []
    for m, target in ((2, 1.0), (5, 1.0), (10, 1.0), (20, TARGET)):
        documents = queries_of(m)
        for queries in documents:
            assert abs(self_bleu(queries) - nltk_self_bleu(queries)) < 1e-12

        rows.append(
            compare(
                f"Self-BLEU against NLTK, M={m}",
                lambda documents=documents: [self_bleu(queries) for queries in documents],
                lambda documents=documents: [nltk_self_bleu(queries) for queries in documents],
                amount=len(documents),
                unit="documents",
                target=target,
            )
        )

    show(rows)
    return rows


def nltk_self_bleu(queries: list[str]) -> float:
    """The mean of NLTK's sentence_bleu of each query against the others."""
    split = [tokens(query) for query in queries]
    return statistics.fmean(
        sentence_bleu(split[:i] + split[i + 1 :], query, smoothing_function=METHOD1) for i, query in enumerate(split)
    )


def queries_of(m: int) -> list[list[str]]:
    """m queries for each of some documents."""
    generations = SHIPPED_DATA / "demo" / "generations"
    recorded = [
        [json.loads(line)["queries"] for line in (generations / f"{mode}.jsonl").read_text("utf-8").splitlines()]
        for mode in ("diverse", "paraphrase")
    ]
    both = [diverse + paraphrase for diverse, paraphrase in zip(*recorded, strict=True)]
    return [(both[i] + both[i + 1])[:m] for i in range(DOCUMENTS)]


if __name__ == "__main__":
    run()
