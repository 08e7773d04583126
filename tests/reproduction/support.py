"""Made-up differences and reports of studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cdp.studies import StudyConfig, StudyReport
from cdp.studies.gains import Gain
from cdp.studies.report import BenchmarkFacts

Interval = tuple[float, float]

CONFIG = StudyConfig.from_dict({"benchmarks": "a", "query_sets": "a"})


def gain(comparison: str, benchmark: str, interval: Interval, **facts: object) -> Gain:
    low, high = interval
    points = (low + high) / 2
    whole: dict[str, object] = {
        "retriever": "static-minilm", "source": "human", "weighting": "none", "per_doc": 5, "cw": 6.0,
        "p": 0.01 if low * high > 0 else 0.4, "p_holm": 0.02 if low * high > 0 else 0.8, "n_queries": 100,
        "n_seeds": 3, "seed_sd": 0.3, "seeds_agree": True, "by_seed": (points - 0.3, points, points + 0.3), **facts,
    }  # fmt: skip
    return Gain(comparison=comparison, benchmark=benchmark, points=points, low=low, high=high, **whole)  # type: ignore[arg-type]


def report(
    gains: Sequence[Gain] = (), *, in_domain: Sequence[str] = (), languages: Mapping[str, str] | None = None
) -> StudyReport:
    names = dict.fromkeys(g.benchmark for g in gains)
    spoken = languages or {}
    benchmarks = tuple(
        BenchmarkFacts(name, "test", 100, 1000, 6.0, (5.8, 6.2), spoken.get(name, "en"), name, name in in_domain)
        for name in names
    )
    return StudyReport(
        id="study-1", name="made up", state="finished", config=CONFIG, sources=(),
        benchmarks=benchmarks, rows=(), gains=tuple(gains), correlations=(), rates=(), threshold=None, no_threshold="",
        planned=4, finished=4, reused=0, failures=(),
    )  # fmt: skip
