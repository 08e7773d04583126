"""A criterion's figure is the difference that is in the data, over the judged sets and trainings that it names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cdp.studies.gains import Observation, over_datasets
from reproduction.criteria import Criterion
from reproduction.figures import Figure, differences, figure, groups
from reproduction.kept import Kept
from tests.reproduction.support import CORPORA, SETS, criterion, study

pytestmark = pytest.mark.slow


def truth(name: str, source: str, per_doc: int, weighting: str) -> float:
    """Diverse queries gain 2 points by further ones, and 0.5 a content word more; those of set7 3 more in-domain."""
    several = per_doc > 1
    gain = several * (2 + 0.5 * (SETS[name] - 7.5)) if source.startswith("diverse") else 0.0
    return gain + 3 * several * (name == "set7" and source == "diverse on one") + (weighting == "cw") * several


@pytest.fixture(scope="module")
def contrast(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return study(tmp_path_factory.mktemp("kept"), truth, weightings="none, cw", noise=1.0)


def found(kept: Kept, **changes: object) -> Figure:
    return figure(criterion(**changes), {"recorded-contrast": kept})


def value(found: Figure) -> float:
    assert found.coefficient is not None, found.problem
    return found.coefficient.value


def test_the_mean_is_over_sets_corpora_and_counts_out_of_domain(contrast: Kept) -> None:
    mean = found(contrast)
    assert value(mean) == pytest.approx(2, abs=0.1)
    assert mean.coefficient is not None
    assert mean.coefficient.low < mean.ninety[0] < 2 < mean.ninety[1] < mean.coefficient.high
    assert [name for name, *_ in mean.sets] == list(SETS)
    assert (mean.n_families, mean.n_corpora) == (8, 4)
    last = found(contrast, judged=("set7",)).sets[0][2]
    assert last == pytest.approx(2 + 0.5 * 3.5, abs=0.2), "the corpus of its own documents is left out"
    (in_domain,) = found(contrast, domain="in").sets
    assert (in_domain[0], in_domain[2]) == ("set7", pytest.approx(5 + 0.5 * 3.5, abs=0.3))


def test_what_a_study_has_throughout_needs_no_name(tmp_path: Path) -> None:
    """A plan that trains all layers of all retrievers compares none; one that trains two numbers of them does."""
    all_layers = study(tmp_path / "one", truth, layers="0", retrievers="minilm", noise=1.0)
    assert value(found(all_layers)) == pytest.approx(2, abs=0.1)

    both = study(tmp_path / "two", truth, layers="0, 2", retrievers="minilm", noise=1.0)
    assert "no two conditions" in found(both).problem
    named = found(both, of={"method": "diverse", "per_doc": [2, 5], "layers": 2})
    assert value(named) == pytest.approx(2, abs=0.1)


def test_the_slope_is_on_the_sets_content_words(contrast: Kept) -> None:
    assert value(found(contrast, figure="slope")) == pytest.approx(0.5, abs=0.05)
    low = found(contrast, cw=(0.0, 7.0))
    assert value(low) == pytest.approx(2 - 0.5 * 2.5, abs=0.2)
    assert len(low.sets) == 3
    few = found(contrast, cw=(0.0, 6.0))
    assert few.coefficient is None
    assert few.problem == "2 judged families of the 3 that it needs"
    held = found(contrast, figure="slope", beside=("words", "overlap"))
    assert held.problem == "8 judged families of the 9 that it needs"


def test_the_slope_over_queries_is_within_the_sets(contrast: Kept) -> None:
    """The sets' own slope is 0.5; over queries, which all gain alike within a set, there is none."""
    within = found(contrast, figure="slope", over="queries")
    assert within.coefficient is not None
    assert within.coefficient.low < 0 < within.coefficient.high
    assert abs(within.coefficient.value) < 0.1
    one = found(contrast, over="queries", judged=("set0",))
    assert value(one) == pytest.approx(2 - 0.5 * 3.5, abs=0.2)
    assert "several" in found(contrast, over="queries").problem


def test_against_replaces_what_it_names(contrast: Kept) -> None:
    assert value(found(contrast, against={"per_doc": 1})) == pytest.approx(2, abs=0.15)
    assert value(found(contrast, against={"method": "untrained"})) == pytest.approx(2, abs=0.15)
    assert value(found(contrast, of={"method": "paraphrase", "per_doc": 5}, against={"per_doc": 1})) == pytest.approx(
        0, abs=0.15
    )
    weighted = found(contrast, of={"weighting": "cw", "per_doc": [2, 5]}, against={"weighting": "none"})
    assert value(weighted) == pytest.approx(1, abs=0.1)
    one = found(contrast, of={"method": "diverse", "per_doc": 5, "corpus": ["two"]})
    assert one.n_corpora == 1
    nothing = found(contrast, of={"method": "human"})
    assert nothing.problem.startswith("no two conditions")


def test_an_interaction_is_a_difference_of_differences(tmp_path: Path) -> None:
    def weighed(name: str, source: str, per_doc: int, weighting: str) -> float:
        return 4.0 * (source.startswith("diverse") and weighting == "cw") + 9 * (weighting == "cw")

    kept = study(tmp_path, weighed, weightings="none, cw", noise=1.0, corpora=CORPORA[:2])
    assert value(found(kept)) == pytest.approx(0, abs=0.1)
    crossed = found(kept, interaction={"weighting": "cw"})
    assert value(crossed) == pytest.approx(-4, abs=0.1)


def test_equal_pairs_are_told_from_equal_documents(tmp_path: Path) -> None:
    kept = study(tmp_path, truth, design="documents and pairs", max_documents=50, corpora=CORPORA[:1])
    cells = {d.condition for d in differences(kept, criterion(of={"held": "equal pairs"}, against={"per_doc": 1}))}
    assert {condition.held for condition in cells} == {"equal pairs"}
    assert {condition.per_doc for condition in cells} == {2, 5}
    budget = study(tmp_path, truth, budget=20, corpora=CORPORA[:1])
    assert not list(differences(budget, criterion()))
    assert list(differences(budget, criterion(of={"held": "equal pairs", "per_doc": 5}, against={"per_doc": 1})))


def test_what_two_studies_share_counts_once(contrast: Kept, tmp_path: Path) -> None:
    both = criterion(studies=("recorded-contrast", "again"))
    twice = figure(both, {"recorded-contrast": contrast, "again": contrast})
    assert twice == found(contrast)


def test_corpora_of_one_source_are_one_cluster(contrast: Kept) -> None:
    """Two corpora that share documents with the same judged family are of one source, in whichever study that shows."""
    corpora = [{**corpus, "corpus": f"{corpus['corpus']} more"} for corpus in contrast.about["corpora"]]
    more = replace(contrast, about={**contrast.about, "corpora": corpora})
    family_of, corpus_of = groups([contrast, more])
    assert corpus_of["one"] == corpus_of["one more"]
    assert len(set(corpus_of.values())) == 2 * len(CORPORA) - 1
    assert len(set(family_of.values())) == len(SETS)


def simulated(rng: np.random.Generator) -> list[Observation]:
    """Two studies, of six corpora and of four of these with another retriever: families, corpora and both together
    have effects, of each study's own seeds too. The mean is 0.5 and the slope on content words 0.3."""
    cw = np.linspace(4, 14, 8)
    family, corpus, both = rng.normal(0, 0.6, 8), rng.normal(0, 0.6, 6), rng.normal(0, 0.3, (6, 8))
    made = []
    for number, corpora in enumerate((range(6), range(4))):
        shared = rng.normal(0, 0.3, 5)
        for c in corpora:
            for f in range(8):
                truth = 0.5 + 0.3 * (cw[f] - cw.mean()) + family[f] + corpus[c] + both[c, f] + rng.normal(0, 0.2)
                seeds = truth + shared + rng.normal(0, 0.4, 5)
                point = float(seeds.mean())
                made.append(
                    Observation(
                        f"s{number}", f"f{f}", f"b{f}", point, 0.04, tuple(seeds), {"cw": float(cw[f])}, f"c{c}"
                    )
                )
    return made


def test_pooled_over_two_studies_the_intervals_cover_what_they_say() -> None:
    """Of 400 runs 96.5% (mean) and 96.8% (slope); the mean's interval by families alone holds the truth in 87%."""
    rng, runs = np.random.default_rng(2), 100
    hits, alone = np.zeros(2), 0
    for _ in range(runs):
        observations = simulated(rng)
        model = over_datasets("", observations, ["cw"])
        for number, (term, true) in enumerate((("mean gain", 0.5), ("cw", 0.3))):
            c = model.term(term)
            assert c is not None
            hits[number] += c.low <= true <= c.high
        c = over_datasets("", [replace(o, corpus="") for o in observations], ["cw"]).term("mean gain")
        assert c is not None
        alone += c.low <= 0.5 <= c.high
    mean, slope = hits / runs
    assert 0.92 <= mean <= 0.99
    assert 0.92 <= slope <= 0.995
    assert alone / runs < mean - 0.04


def test_a_criterion_over_several_studies_reads_all_of_them(contrast: Kept, tmp_path: Path) -> None:
    other = study(tmp_path, lambda *a: 2 * truth(*a), plan="template-contrast", noise=1.0)
    asked: Criterion = criterion(studies=("recorded-contrast", "template-contrast"))
    both = figure(asked, {"recorded-contrast": contrast, "template-contrast": other})
    assert value(both) == pytest.approx(3, abs=0.1)
    assert both.n_corpora == 4
