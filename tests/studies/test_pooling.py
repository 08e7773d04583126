"""Gains pooled over benchmarks, conditions and studies: the slope that is in the data, with honest errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cdp.studies.gains import MEAN, Observation, over_datasets
from cdp.studies.text import to_markdown
from tests.studies.support import BENCHMARKS, N_QUERIES, study

CW = (4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0)


def observations(rng: np.random.Generator, *, slope: float = 1.0, by_words: float = 0.0) -> list[Observation]:
    """Two conditions on eight benchmarks; words of a query are correlated with its content words."""
    made = []
    for number, cw in enumerate(CW):
        words = 2 * cw + rng.normal(0, 3)
        truth = slope * (cw - 7) + by_words * (words - 14) + rng.normal(0, 0.5)
        for condition in range(2):
            seeds = tuple(truth + rng.normal(0, 0.3, 3))
            name = f"b{number}"
            points = float(np.mean(seeds))
            made.append(
                Observation("s", name, name, points, 0.1, seeds, {"cw": cw, "words": words, "steps": condition})
            )
    return made


def test_the_slope_is_found_and_what_explains_it_is_told_apart() -> None:
    rng = np.random.default_rng(0)
    pooled = over_datasets("gain", observations(rng), ["cw"])
    slope = pooled.term("cw")
    assert slope is not None
    assert slope.low < 1.0 < slope.high
    assert slope.p < 0.01
    assert (pooled.n, pooled.n_datasets, pooled.n_families) == (16, 8, 8)
    by_length = observations(np.random.default_rng(1), slope=0.0, by_words=1.0)
    alone, held = over_datasets("gain", by_length, ["cw"]), over_datasets("gain", by_length, ["cw", "words"])
    assert alone.term("cw").p < 0.05  # type: ignore[union-attr]
    assert held.term("cw").low < 0 < held.term("cw").high  # type: ignore[union-attr]


def test_benchmarks_of_one_family_count_as_one() -> None:
    made = observations(np.random.default_rng(2))
    together = [replace(o, family=str(int(o.benchmark[1]) // 2)) for o in made]
    apart, joined = over_datasets("gain", made), over_datasets("gain", together)
    assert joined.n_families == 4
    assert joined.term(MEAN).degrees < apart.term(MEAN).degrees  # type: ignore[union-attr]
    two = [replace(o, family=str(int(o.benchmark[1]) // 4)) for o in made]
    assert over_datasets("gain", two).problem.startswith("2 independent groups are too few")


def test_what_a_seed_does_to_all_benchmarks_widens_the_mean_gain() -> None:
    made = observations(np.random.default_rng(3), slope=0.0)
    shifted = [
        replace(o, by_seed=tuple(v + shift for v, shift in zip(o.by_seed, (-5, 0, 5), strict=True))) for o in made
    ]
    alone, shaken = over_datasets("gain", made).term(MEAN), over_datasets("gain", shifted).term(MEAN)
    assert alone is not None
    assert shaken is not None
    assert shaken.value == alone.value
    assert shaken.error > 3 * alone.error


def grows(benchmark: str, source: str, per_doc: int, weighting: str) -> float:
    return (BENCHMARKS[benchmark] - 7) * (per_doc > 1)


def test_a_report_pools_facts_and_shows_its_criteria() -> None:
    rng = np.random.default_rng(5)
    facts = {
        name: {
            "family": name,
            "cw_of": {f"q{i}": int(rng.integers(2, 14)) for i in range(N_QUERIES)},
            "facts_of": {f"q{i}": {"words": 9, "overlap": 0.5} for i in range(N_QUERIES)},
        }
        for name in BENCHMARKS
    }
    report = study(grows, facts=facts, criteria="Support: the slope is above 0.")
    assert dict(report.benchmarks[0].facts) == {"words": 9.0, "overlap": 0.5}
    by_cw = next(m for m in report.pooled if m.title.endswith(": by content words"))
    assert by_cw.term("cw").value == pytest.approx(1.0, abs=0.2)  # type: ignore[union-attr]
    text = to_markdown(report)
    assert "Support: the slope is above 0." in text
    for line in text.split("## More queries per document minus one")[1].splitlines()[4:6]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert " to " in cells[5]
        float(cells[6].removeprefix("< "))


def test_a_benchmark_that_is_in_domain_for_one_source_stays_in_the_line_for_the_others() -> None:
    """With two corpora in one plan, the gain on a corpus's own benchmark is no evidence of new tasks."""
    facts = {"simple": {"in_domain_of": ["human on a"]}}
    report = study(grows, kinds=("human on a", "human on b"), facts=facts)
    domains = {m.title.rpartition(", ")[2].partition(":")[0] for m in report.pooled}
    assert domains == {"out of domain", "in-domain"}


def test_diverse_is_compared_with_the_paraphrases_of_its_own_corpus() -> None:
    kinds = ("diverse on a", "paraphrase on a", "diverse on b")
    report = study(grows, kinds=kinds)
    compared = {g.condition.source for g in report.gains if g.comparison == "diverse_minus_paraphrase"}
    assert compared == {"diverse on a"}


def test_one_kind_of_queries_has_its_models_once() -> None:
    """BM25, which is compared with the untrained retriever, was taken for another kind of queries."""
    titles = [m.title for m in study(grows, lexical=1.0).pooled]
    assert titles
    assert not any("human queries" in title for title in titles)
    assert any("human queries" in m.title for m in study(grows, kinds=("human", "diverse")).pooled)


def test_what_a_study_holds_equal_is_in_the_name_of_its_models() -> None:
    """Equal pairs by a budget were pooled as equal documents."""
    titles = {m.title for m in study(grows, design="equal pairs", budget=50).pooled}
    assert all(", equal pairs, " in title for title in titles if "weights" not in title)
    both = study(grows, design="documents and pairs", max_documents=100)
    assert {m.title.split(", ")[1] for m in both.pooled} == {"equal documents", "equal pairs"}


def test_two_caps_are_two_lines() -> None:
    report = study(grows, weightings="none, cw, cw@6")
    compared = {g.way for g in report.gains if g.comparison == "cw_weighted_minus_equal"}
    assert compared == {"tiny · human · cw", "tiny · human · cw@6"}


@pytest.mark.slow
def test_the_mean_gain_covers_with_corpora_families_seeds_and_queries_as_sources() -> None:
    """Corpora that are trained on and families that are judged are crossed: over families alone an interval is far too
    narrow."""
    random = np.random.default_rng(3)
    runs, covered, alone = 120, 0, 0
    for _ in range(runs):
        corpora, families, seeds = random.normal(0, 2, 6), random.normal(0, 1, 8), random.normal(0, 0.5, 3)
        observations = []
        for c, of_corpus in enumerate(corpora):
            for f, of_family in enumerate(families):
                single = of_corpus + of_family + seeds + random.normal(0, 0.5, 3) + random.normal(0, 0.8)
                observations.append(
                    Observation(
                        "s", f"family {f}", f"b{f}", float(single.mean()), 0.7, tuple(single), {}, f"corpus {c}"
                    )
                )
        both = over_datasets("gain", observations).term(MEAN)
        one = over_datasets("gain", [replace(o, corpus="") for o in observations]).term(MEAN)
        assert both is not None
        assert one is not None
        covered += both.low <= 0 <= both.high
        alone += one.low <= 0 <= one.high
    assert 0.92 <= covered / runs <= 0.99
    assert alone / runs < 0.8
