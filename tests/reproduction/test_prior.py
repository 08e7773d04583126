"""What a new dataset predicts: variances against closed forms, intervals by simulation, the shipped table."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy

from cdp.principle.recommend import FILE, expected, priors
from cdp.query_sets.origins import written_by
from cdp.studies.report import StudyReport
from reproduction import kept, prior, stages
from reproduction.prior import END, METHODS, START, Fit, estimate, own, published, text
from tests.reproduction.support import study
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow


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
    random, runs_ = np.random.default_rng(0), 200
    datasets, setups = crossed(8, 4)
    inside = 0
    for _ in range(runs_):
        effects = random.normal(0, 2, 9)[:, None] + random.normal(0, 0.7, 5) + random.normal(0, 1, (9, 5))
        mean, sd, degrees = Fit.of(effects[:8, :4].ravel(), datasets, setups).predict()
        inside += abs(effects[8, 4] - mean) <= scipy.stats.t.ppf(0.975, degrees) * sd
    assert 0.92 <= inside / runs_ <= 0.985


def test_the_papers_differences_have_their_own_variances() -> None:
    """Own ones that lie close together are predicted closely, however the paper's lie, and the other way round."""
    random = np.random.default_rng(2)
    y = np.concatenate([random.normal(1, 0.5, 12), random.normal(1, 6, 12)])
    papers = np.arange(24) >= 12
    names, setups = np.arange(24).astype(str), np.array(["s"] * 24)
    fit = Fit.of(y, names, setups, papers=papers)
    assert fit.predict()[1] < 1.0 < 3.0 < fit.predict(papers=True)[1]
    assert fit.predict()[1] == pytest.approx(np.std(y[:12], ddof=1), rel=0.15)


def test_a_slope_is_found_and_predicts() -> None:
    random = np.random.default_rng(1)
    datasets, setups = crossed(12, 3)
    x = np.repeat(random.normal(2, 0.5, 12), 3)
    fit = Fit.of(3 * x + random.normal(0, 0.1, 36), datasets, setups, x)
    assert fit.predict(4.0)[0] == pytest.approx(12, abs=0.4)


def truth(name: str, source: str, per_doc: int, weighting: str) -> float:
    return (source.startswith("diverse")) * per_doc + 2.0 * (name == "set3")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> StudyReport:
    """A study of three Q/Doc by an LLM's queries for four corpora, judged on eight English sets."""
    found = study(tmp_path_factory.mktemp("kept"), truth).report
    return replace(
        found,
        rows=tuple(replace(row, steps=90) for row in found.rows),
        sources=tuple(replace(s, written_by="a language model") for s in found.sources),
        benchmarks=tuple(replace(b, language="en") for b in found.benchmarks),
    )


def test_a_studys_differences_go_in_as_they_were_measured(report: StudyReport) -> None:
    taken = list(own(report))
    assert Counter(o.kind for o in taken) == {
        # Of set7, documents of the first corpus are judged.
        # Several paraphrases over one say nothing of several different queries.
        **{("qdoc_minus_one", "equal documents", "infonce", m): 31 for m in (2, 5)},
        **{("diverse_minus_paraphrase", "equal documents", "infonce", m): 31 for m in (1, 2, 5)},
    }
    assert not any(o.dataset == "set7" and o.setup.endswith(" one") for o in taken)
    for o in taken:
        wanted = o.kind.per_doc if o.kind.comparison != "qdoc_minus_one" else o.kind.per_doc - 1
        assert o.points == pytest.approx(wanted if "diverse" in o.setup else 0, abs=1.5)


def test_only_what_compares_goes_in(report: StudyReport) -> None:
    """Equal steps, English, no templates; the paper's in-domain datasets are out."""

    def with_steps(one: int, several: int) -> set[str]:
        rows = tuple(replace(row, steps=one if row.condition.per_doc == 1 else several) for row in report.rows)
        return {o.kind.comparison for o in own(replace(report, rows=rows))}

    assert with_steps(100, 105) == {"qdoc_minus_one", "diverse_minus_paraphrase"}
    assert with_steps(3, 27) == {"diverse_minus_paraphrase"}
    assert with_steps(0, 0) == set(), "steps that were not written down are not equal"
    template = written_by("synthetic", "template", "")
    assert not list(own(replace(report, sources=tuple(replace(s, written_by=template) for s in report.sources))))
    assert not list(own(replace(report, benchmarks=tuple(replace(b, language="fr") for b in report.benchmarks))))
    assert not {o.dataset for o in published()} & {"trec-dl-2019", "trec-dl-2020"}
    assert len({o.dataset for o in published()}) == 29


def test_a_sample_is_of_the_papers_dataset_and_designs_stay_apart(
    report: StudyReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each row of the table is fitted anew without each dataset: two rows will do.
    five = [o for o in published() if (o.kind.comparison, o.kind.per_doc) == ("qdoc_minus_one", 5)]
    monkeypatch.setattr(prior, "published", lambda: five)
    renamed = tuple(replace(b, family="scifact_sample" if b.name == "set3" else b.family) for b in report.benchmarks)
    paired = replace(report, benchmarks=renamed, config=report.config.replace(design="equal pairs", budget=100))
    assert {o.dataset for o in own(paired)} >= {"scifact", "set4"}
    assert {o.kind.design for o in own(paired) if o.kind.per_doc > 1} == {"equal pairs"}
    few = replace(
        paired, gains=[g for g in paired.gains if (g.comparison, g.condition.per_doc) == ("qdoc_minus_one", 5)]
    )
    rows = {(p.comparison, p.design, p.per_doc): p for p in estimate([few])}
    both = rows["qdoc_minus_one", "equal pairs", 5]
    assert (both.datasets, both.published, both.setups) == (12, 4, 2 + 4)
    assert rows["qdoc_minus_one", "equal documents", 5].datasets == 29


@pytest.mark.soak
def test_the_shipped_table_is_that_of_the_kept_studies() -> None:
    """Else: make reproduction."""
    studies = kept.read(REPOSITORY / "docs" / "reproduction", stages.STAGES)
    made = estimate([study.report for study in studies.values()])
    assert [(p.comparison, p.design, p.loss, p.per_doc) for p in made] == [
        (p.comparison, p.design, p.loss, p.per_doc) for p in priors()
    ]
    for new, shipped in zip(made, priors(), strict=True):
        assert (new.points, new.sd, new.error) == pytest.approx((shipped.points, shipped.sd, shipped.error), abs=0.02)
        assert new.covered == pytest.approx(shipped.covered, abs=0.01)


def test_the_document_holds_the_shipped_table() -> None:
    assert METHODS.read_text(encoding="utf-8").split(START)[1].split(END)[0].strip() == text()


def test_the_table_reads_as_students_intervals() -> None:
    with open(FILE, encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    first = priors()[0]
    assert (first.points, first.per_doc) == (float(row["points"]), int(row["per_doc"]))
    assert (first.low, first.high) == pytest.approx(scipy.stats.t.interval(0.95, first.degrees, first.points, first.sd))
    usual = ("qdoc_minus_one", "equal documents", "infonce")
    assert [e.per_doc for e in expected()] == [p.per_doc for p in priors() if (p.comparison, p.design, p.loss) == usual]
