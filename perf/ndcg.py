"""How much faster than pytrec_eval-terrier is NDCG@10, for 10,000 queries with 100 results each?

The array form is what an evaluation uses: ranked document numbers straight from ``search``. The dictionary form starts
from the same dictionaries as pytrec_eval and spends most of its time reading them. Values are compared before any time
is taken.

    python -m perf.ndcg
"""

from __future__ import annotations

import numpy as np
import pytrec_eval

from cdp.evaluation import ndcg
from cdp.evaluation.measures import compute, from_ranking
from perf.timing import Row, compare, show

QUERIES, DEPTH, DOCUMENTS = 10_000, 100, 100_000


def run() -> list[Row]:
    """Two rows: arrays (the target holds for them) and dictionaries, against pytrec_eval's evaluation."""
    random = np.random.default_rng(0)
    retrieved = np.stack([random.choice(DOCUMENTS, DEPTH, replace=False) for _ in range(QUERIES)])
    scores = -np.sort(-random.random((QUERIES, DEPTH)), axis=1)
    judged = np.concatenate([retrieved[:, :3], random.integers(0, DOCUMENTS, (QUERIES, 3))], axis=1)
    grades = random.integers(0, 4, judged.shape)
    names = [f"q{i}" for i in range(QUERIES)]
    results = {
        name: {f"d{d}": float(s) for d, s in zip(documents, row, strict=True)}
        for name, documents, row in zip(names, retrieved, scores, strict=True)
    }

    qrels = {
        name: {f"d{d}": int(g) for d, g in zip(documents, row, strict=True)}
        for name, documents, row in zip(names, judged, grades, strict=True)
    }

    pairs = [(i, int(d[1:]), g) for i, name in enumerate(names) for d, g in qrels[name].items() if g > 0]
    query, document, grade = np.array(pairs).T
    peer = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})

    def arrays() -> np.ndarray:
        return compute(from_ranking(retrieved, names, query, document, grade), ["ndcg@10"])["ndcg@10"]

    expected = [values["ndcg_cut_10"] for values in peer.evaluate(results).values()]
    np.testing.assert_allclose(arrays(), expected, atol=1e-9)
    np.testing.assert_allclose(list(ndcg(results, qrels).per_query.values()), expected, atol=1e-9)
    rows = [
        compare(f"NDCG@10 from {form}, pytrec_eval", ours, lambda: peer.evaluate(results), amount=QUERIES,
                unit="queries", target=target)
        for form, ours, target in (("arrays", arrays, 10.0), ("dictionaries", lambda: ndcg(results, qrels), 1.0))
    ]  # fmt: skip

    show(rows)
    return rows


if __name__ == "__main__":
    run()
