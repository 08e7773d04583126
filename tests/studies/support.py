"""Records of a study as its worker leaves them, with differences that are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from cdp.base.condition import flat
from cdp.studies.config import StudyConfig
from cdp.studies.plan import StudySource, conditions
from cdp.studies.report import StudyReport, build

# Name → mean CW.
BENCHMARKS = {"simple": 5.0, "medium": 8.0, "hard": 12.0}

N_QUERIES = 200

# (benchmark, source, Q/Doc, weighting) → points above the untrained retriever's 40.
Truth = Callable[[str, str, int, str], float]


def record(condition: Mapping[str, Any] | None, retriever: str, scores: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """One condition's record; scores per query in percent."""
    return {
        "schema": 1,
        "condition": condition,
        "retriever": retriever,
        "training": None if condition is None else {"pairs": 100 * condition["per_doc"], "documents": 100,
                                                    "seconds": 2.0},
        "evaluations": {
            f"place-{name}": {
                "query_ids": [f"q{i}" for i in range(len(values))],
                "ndcg@10": (values / 100).tolist(),
            }
            for name, values in scores.items()
        },
    }  # fmt: skip


def study(truth: Truth, **settings: Any) -> StudyReport:
    """The report over ``made``'s records."""
    return build("study-1", "made up", "finished", *made(truth, **settings))


def made(
    truth: Truth,
    *,
    benchmarks: Mapping[str, float] = BENCHMARKS,
    kinds: Sequence[str] = ("human",),
    drop: Callable[[Mapping[str, Any]], bool] = lambda condition: False,
    failures: Sequence[tuple[str, str]] = (),
    noise: float = 3.0,
    lexical: float | None = None,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    n_queries: int = N_QUERIES,
    **settings: Any,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(what a study's worker says of it, records made from ``truth``), with noise per query; conditions that ``drop``
    names are missing. ``lexical`` is how many points BM25 is above the untrained retriever, where it was evaluated."""
    config = StudyConfig.from_dict(
        {
            "benchmarks": ", ".join(benchmarks),
            "query_sets": ", ".join(kinds),
            "per_doc": "1, 2, 5",
            "retrievers": "tiny",
            "seeds": "0, 1, 2",
            **settings,
        }
    )
    sources = [StudySource(kind, kind, f"{kind}-set", "", 100, (100,) * 20) for kind in kinds]
    rng = np.random.default_rng(0)
    easy = {name: rng.uniform(10, 70, n_queries) for name in benchmarks}
    kept = [record(None, "tiny", easy)]
    if lexical is not None:
        config = StudyConfig.from_dict({**config.to_dict(), "bm25": True})
        shifted = {name: easy[name] + lexical + rng.normal(0, noise, n_queries) for name in benchmarks}
        kept.append(record(None, "bm25", shifted))
    for planned in conditions(config, sources):
        about = flat(planned)
        if drop(about):
            continue
        scores = {
            name: easy[name]
            + truth(name, planned.condition.source, planned.condition.per_doc, planned.condition.weighting)
            + rng.normal(0, noise, n_queries)
            for name in benchmarks
        }
        kept.append(record(about, "tiny", scores))
    kept += [
        {"schema": 1, "retriever": "tiny", "condition": None, "failed": name, "failure": {"message": reason}}
        for name, reason in failures
    ]
    about = {
        "config": config.to_dict(),
        "sources": [asdict(source) for source in sources],
        "benchmarks": [
            {
                "name": name,
                "split": "test",
                "place": f"place-{name}",
                "n_queries": n_queries,
                "n_documents": 1000,
                "cw": cw,
                "cw_interval": [cw - 0.2, cw + 0.2],
                **(facts or {}).get(name, {}),
            }
            for name, cw in benchmarks.items()
        ],
    }
    return about, kept
