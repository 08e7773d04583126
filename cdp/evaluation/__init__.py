"""How good is a retriever: running one on a benchmark, BM25, retrieval measures, error analysis.

Importing this loads no torch. ``cdp.evaluation.evaluate`` loads it when it is needed.
"""

from __future__ import annotations

from cdp.evaluation.evaluate import Evaluation, evaluate_model
from cdp.evaluation.scoring import Scores, ndcg, score
from cdp.retrievers.exact_search import search

__all__ = ["Evaluation", "Scores", "evaluate_model", "ndcg", "score", "search"]
