"""Gains of single queries in one regression."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reproduction.pooling import QueryObservations, over_queries


def test_over_queries_each_benchmark_counts_the_same() -> None:
    rng = np.random.default_rng(4)
    clusters = []
    for number, n in enumerate((2000, 30, 30, 30, 30)):
        cw = rng.integers(2, 15, n).astype(float)
        slope = 5.0 if number == 0 else 1.0
        gains = slope * cw + 100 * number + rng.normal(0, 1, n)
        clusters.append(QueryObservations("s", str(number), str(number), gains, {"cw": cw}))
    pooled = over_queries("gain", clusters, ["cw"])
    assert pooled.term("cw").value == pytest.approx((5 + 4 * 1) / 5, abs=0.3)  # type: ignore[union-attr]
    lacking = replace(clusters[1], covariates={"cw": np.full(30, np.nan)})
    assert over_queries("gain", [clusters[0], *clusters[2:], lacking], ["cw"]).left_out == ("1",)
