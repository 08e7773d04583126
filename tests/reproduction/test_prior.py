"""What a new dataset lets expect: variances against closed forms, intervals by simulation, the shipped table."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
import scipy

from cdp.corpus.origin import written_by
from cdp.principle.prior import FILE, expected, priors
from reproduction import runs, stages
from reproduction.prior import END, METHODS, START, Fit, estimate, own, published, text
from tests.support import REPOSITORY


def crossed(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Names of n datasets and m setups, each dataset in each setup."""
    return np.repeat([f"d{i}" for i in range(n)], m), np.tile([f"s{i}" for i in range(m)], n)


def test_balanced_variances_are_those_of_the_analysis_of_variance() -> None:
    """Two crossed effects without repetition: REML equals the expected mean squares where these are positive."""
    n, m = 9, 5
    random = np.random.default_rng(3)
    y = 2 + random.normal(0, 2, (n, 1)) + random.normal(0, 1.5, (1, m)) + random.normal(0, 1, (n, m))
    rows, columns = y.mean(1), y.mean(0)
    rest = ((y - rows[:, None] - columns + y.mean()) ** 2).sum() / (n - 1) / (m - 1)
    datasets, setups = m * rows.var(ddof=1), n * columns.var(ddof=1)
    fit = Fit.of(y.ravel(), *crossed(n, m))
    assert fit.variances == pytest.approx([(datasets - rest) / m, (setups - rest) / n, rest], rel=1e-3)
    mean, sd, _ = fit.predict()
    assert mean == pytest.approx(y.mean())
    assert sd**2 == pytest.approx(sum(fit.variances) + fit.variances @ [1 / n, 1 / m, 1 / n / m], rel=1e-3)


def test_one_value_per_dataset_gives_students_prediction() -> None:
    y = np.array([1.0, 3.0, 2.0, 7.0, 4.0])
    mean, sd, degrees = Fit.of(y, np.array(list("abcde")), np.array(["s"] * 5)).predict()
    low, high = scipy.stats.t.interval(0.95, 4, y.mean(), y.std(ddof=1) * (1 + 1 / 5) ** 0.5)
    assert degrees == pytest.approx(4)
    assert mean + np.array([-1, 1]) * scipy.stats.t.ppf(0.975, degrees) * sd == pytest.approx([low, high])


def test_the_intervals_cover_a_new_dataset_trained_in_a_new_way() -> None:
    random, runs_ = np.random.default_rng(0), 400
    datasets, setups = crossed(8, 4)
    inside = 0
    for _ in range(runs_):
        effects = random.normal(0, 2, 9)[:, None] + random.normal(0, 0.7, 5) + random.normal(0, 1, (9, 5))
        mean, sd, degrees = Fit.of(effects[:8, :4].ravel(), datasets, setups).predict()
        inside += abs(effects[8, 4] - mean) <= scipy.stats.t.ppf(0.975, degrees) * sd
    assert 0.92 <= inside / runs_ <= 0.985


def test_a_slope_is_found_and_predicts() -> None:
    random = np.random.default_rng(1)
    datasets, setups = crossed(12, 3)
    x = np.repeat(random.normal(2, 0.5, 12), 3)
    fit = Fit.of(3 * x + random.normal(0, 0.1, 36), datasets, setups, x)
    assert fit.predict(4.0)[0] == pytest.approx(12, abs=0.4)


@pytest.fixture(scope="module")
def stored() -> dict:
    return dict(runs.of_files(REPOSITORY / "docs" / "reproduction", stages.STAGES).evidence.reports)


def test_only_what_compares_goes_in(stored: dict) -> None:
    """Equal steps, out of domain, English, no templates; the paper's in-domain datasets are out."""
    report = stored["recorded-contrast"]

    def taken(**steps: int) -> set[str]:
        rows = tuple(replace(row, steps=steps["one"] if row.per_doc == 1 else steps["several"]) for row in report.rows)
        return {o.kind.comparison for o in own(replace(report, rows=rows))}

    assert taken(one=100, several=105) == {"qdoc_minus_one", "diverse_minus_paraphrase"}
    assert taken(one=3, several=27) == {"diverse_minus_paraphrase"}
    sources = tuple(replace(source, written_by=written_by("synthetic", "template", "")) for source in report.sources)
    assert not list(own(replace(report, sources=sources)))
    assert not list(own(replace(report, benchmarks=tuple(replace(b, language="fr") for b in report.benchmarks))))
    near = {b.name for b in report.benchmarks if b.in_domain_of}
    assert near
    of_own = [g for g in report.gains if g.benchmark in near and g.comparison == "diverse_minus_paraphrase"]
    everything = [g for g in report.gains if g.comparison == "diverse_minus_paraphrase"]
    left = [o for o in own(report) if o.kind.comparison == "diverse_minus_paraphrase"]
    assert len(everything) - len(of_own) < len(left) < len(everything), (
        "in-domain pairs are out, others of that set stay"
    )
    assert not {o.dataset for o in published()} & {"trec-dl-2019", "trec-dl-2020"}
    assert len({o.dataset for o in published()}) == 29


def test_a_sample_and_its_parts_are_the_papers_dataset(stored: dict) -> None:
    assert {"hotpotqa", "musique", "2wikimultihopqa"} <= {o.dataset for o in own(stored["recorded-contrast"])}


@pytest.mark.slow
def test_the_shipped_table_is_that_of_the_stored_studies(stored: dict) -> None:
    """Else: python -m reproduction document."""
    made = estimate(stored)
    assert [(p.comparison, p.design, p.loss, p.per_doc) for p in made] == [
        (p.comparison, p.design, p.loss, p.per_doc) for p in priors()
    ]
    for new, kept in zip(made, priors(), strict=True):
        assert (new.points, new.sd, new.error) == pytest.approx((kept.points, kept.sd, kept.error), abs=0.02)
        assert new.covered == pytest.approx(kept.covered, abs=0.01)


def test_the_document_holds_the_shipped_table() -> None:
    assert METHODS.read_text(encoding="utf-8").split(START)[1].split(END)[0].strip() == text()


def test_the_table_reads_as_students_intervals() -> None:
    with open(FILE, encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    first = priors()[0]
    assert (first.points, first.per_doc) == (float(row["points"]), int(row["per_doc"]))
    assert (first.low, first.high) == pytest.approx(scipy.stats.t.interval(0.95, first.degrees, first.points, first.sd))
    assert first.probability == pytest.approx(scipy.stats.t.sf(0, first.degrees, first.points, first.sd))
    assert [e.per_doc for e in expected()] == [p.per_doc for p in priors() if p.design == "equal documents"][
        : len(expected())
    ]
    assert expected(loss="none such") == ()
