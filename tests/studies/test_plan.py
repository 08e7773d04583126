"""Plans in YAML, and the conditions that follow from them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from cdp.base.condition import EQUAL_PAIRS
from cdp.base.config import Loop, SynthesisConfig, TrainingConfig
from cdp.base.errors import ConfigError, InputError
from cdp.benchmarks import registry
from cdp.principle.tables import read
from cdp.studies.config import AROUND, RATES, StudyConfig, grid, read_plan, ready_made, stored
from cdp.studies.estimate import estimate
from cdp.studies.plan import (
    LEAST_STEPS,
    StudySource,
    conditions,
    documents_at,
    places,
    problems_of_budget,
    steps_of,
    training_config,
)
from cdp.synthesis.methods import METHODS
from cdp.training.plan import Speed, eval_steps_of

HUMAN = StudySource("human", "human", "set", "", 100, (100, 60, 20))


def plan(**settings: object) -> StudyConfig:
    return StudyConfig.from_dict({"benchmarks": "a, b:dev", "query_sets": "set", "per_doc": "1, 2", **settings})


def write(folder: Path, text: str) -> Path:
    file = folder / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_lists_in_yaml_and_changes_from_the_command_line(tmp_path: Path) -> None:
    file = write(tmp_path, "about: a try\nbenchmarks: [x:test, y]\nquery_sets: s\nper_doc: [1, 5]\nseeds: 3\n")
    found = read_plan(file, {"seeds": "1, 2"})
    assert found.benchmarks == ("x:test", "y")
    assert found.per_doc == (1, 5)
    assert found.seeds == (1, 2)
    assert found.name == "mine"


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("benchmarks: [x\n", InputError, "line"),
        ("- just\n- a list\n", InputError, "must hold settings"),
        ("benchmarks: x\nquery_sets: s\ncolour: red\n", ConfigError, "'colour' is not a setting"),
        ("benchmarks: x\n", ConfigError, "neither 'query_sets' nor 'methods'"),
        ("query_sets: s\n", ConfigError, "'benchmarks' is required"),
        ("benchmarks: x\nmethods: diverse\n", ConfigError, "need a 'corpus'"),
        ("benchmarks: x\nquery_sets: s\nper_doc: [0, 1]\n", ConfigError, "at least 1, not 0"),
        ("benchmarks: x\nquery_sets: s\nseeds: [a]\n", ConfigError, "whole numbers"),
        ("benchmarks: x\nquery_sets: s\nseeds: []\n", ConfigError, "'seeds' is empty"),
        ("benchmarks: {a: b}\nquery_sets: s\n", ConfigError, "must be texts, not a dict"),
        ("benchmarks: ['a,b']\nquery_sets: s\n", ConfigError, "'a,b': an entry cannot contain a comma"),
    ],
)
def test_a_bad_plan_is_one_clear_sentence(tmp_path: Path, text: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        read_plan(write(tmp_path, text))


def test_a_plan_that_is_not_there_names_the_ready_made_ones() -> None:
    with pytest.raises(InputError, match="fairytale-multihop"):
        read_plan("no-such-plan")


def test_every_ready_made_plan_can_be_read_and_says_what_it_answers() -> None:
    names = {found.name for found in ready_made()}
    assert {"qdoc-scaling", "single-query", "document-quantity", "cw-weighting", "fairytale-multihop"} <= names
    for found in ready_made():
        assert len(found.about) > 40
        assert read_plan(found.name).benchmarks


def test_table_1_is_planned_as_the_paper_prints_it() -> None:
    """Its methods, Q/Doc, retrievers and datasets at 80,000 documents; each benchmark is in the registry."""
    printed = [row for row in read("results") if row["table"] == "tab:main_results" and row["n_docs"] == 80_000]
    config = read_plan("paper-table-1")
    assert config.max_documents == 80_000
    assert list(config.per_doc) == sorted({row["queries_per_doc"] for row in printed})
    assert {name.lower() for row in printed for name in [row["retriever"]]} == set(config.retrievers)
    names = {"InPars-GBQ": "inpars_gbq", "SAP": "sap", "DRAMA": "drama", "Ours-diverse": "diverse"}
    given = {"Supervised": "msmarco human", "DRAGON-S": "msmarco cropped"}
    methods = {row["method"] for row in printed}
    assert {names[method] for method in methods - set(given)} == set(config.methods)
    assert {given[method] for method in methods - set(names)} == set(config.query_sets)
    assert set(config.methods) <= set(METHODS)
    assert config.benchmarks == read_plan("paper-full").benchmarks
    assert {name for name, _ in places(config)} <= {entry.name for entry in registry.entries()}


def test_what_a_plan_says_to_do_first_is_accepted() -> None:
    """A plan told people to write queries with a generator that is refused."""
    for found in ready_made():
        for name in re.findall(r"generator (\w+)", found.about):
            assert name in SynthesisConfig.settings()["generator"].choices
        for name in re.findall(r"method\s+(\w+)", found.about):
            SynthesisConfig.from_dict({"corpus": "any", "method": name})


def test_the_plan_on_real_data_is_the_one_that_was_asked_for() -> None:
    config = read_plan("fairytale-multihop")
    assert config.per_doc == (1, 2, 3, 5)
    assert config.weightings == ("none", "cw")
    assert len(config.seeds) == 3
    assert len(conditions(config, [HUMAN])) == 18, "no document has five queries"
    assert [split for _, split in places(config)] == ["test", "dev", "train", "test"]


def test_every_combination_once_and_equal_pairs_together() -> None:
    found = conditions(plan(weightings="none, cw, none", seeds="0, 1, 01", retrievers="r, s"), [HUMAN])
    assert len(found) == len(set(found)) == 2 * 2 * 2 * 2
    data = [(c.condition.retriever, c.condition.source, c.condition.per_doc) for c in found]
    assert sum(a != b for a, b in pairwise(data)) == 3
    assert str(found[2]) == "r · human × 1 · cw, seed 0"


def test_a_budget_takes_fewer_documents_at_more_queries_each() -> None:
    config = plan(budget=100, per_doc="1, 2, 5")
    assert [documents_at(config, m) for m in (1, 2, 5)] == [100, 50, 20]
    assert [c.max_documents for c in conditions(config, [HUMAN])][::3] == [100, 50, 20]
    assert "there are 30" in problems_of_budget(plan(budget=100, max_documents=30, per_doc="1"), HUMAN)
    assert documents_at(plan(), 5) is None


def test_pairs_are_counted_from_the_queries_that_there_are() -> None:
    assert [HUMAN.pairs(m) for m in (1, 2, 3, 5)] == [100, 160, 180, 180]
    assert HUMAN.pairs(1, 50) == 50
    assert StudySource("new", "diverse", "", "", 40).pairs(5) == 200


def test_a_condition_as_a_training() -> None:
    config = plan(epochs=2, learning_rate="0.01")
    condition = conditions(config, [HUMAN])[0]
    found = training_config(config, condition, "set-1")
    assert (found.query_set, found.per_doc, found.loop.epochs, found.learning_rate) == ("set-1", 1, 2, 0.01)
    assert found.loop.batch_size is None


@pytest.mark.parametrize("name", sorted({*TrainingConfig.settings()} - {*Loop.settings()}))
def test_a_further_setting_is_none_that_the_study_decides(name: str) -> None:
    """It was recorded, and something else was trained."""
    with pytest.raises(ConfigError, match=f"'{name}' is not a setting"):
        plan(training=f"eval_steps=10, {name} =x")
    # A study that was run so is still read, as it was trained.
    before = {**plan().to_dict(), "eval_steps": None, "training": f"eval_steps=10,{name}=x"}
    assert stored(before).training == Loop(eval_steps=10)


def test_two_sources_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="same name"):
        conditions(plan(), [HUMAN, HUMAN])


def test_splits_and_paths_of_benchmarks() -> None:
    config = plan(benchmarks="name, name2:dev, data/folder:test, c:/data/x")
    assert places(config) == [("name", ""), ("name2", "dev"), ("data/folder", "test"), ("c:/data/x", "")]


BENCHMARKS = [
    {"name": n, "split": "test", "n_queries": 10, "n_documents": 990, "cw": cw} for n, cw in (("a", 5.0), ("b", 9.0))
]


def settings(name: str = "static-minilm", epochs: int = 3) -> dict[str, TrainingConfig]:
    return {name: TrainingConfig(query_set="any", epochs=epochs, batch_size=20)}


def test_time_is_told_from_measured_speeds_or_not_at_all() -> None:
    config = plan(retrievers="r", seeds="0")
    assert not estimate(config, [HUMAN], BENCHMARKS, settings=settings("r"), speeds={}).measured
    measured = {"r": Speed(100.0, 1000.0)}
    known = estimate(config, [HUMAN], BENCHMARKS, settings=settings("r"), speeds=measured)
    twice = estimate(
        plan(retrievers="r", seeds="0", steps=180), [HUMAN], BENCHMARKS, settings=settings("r"), speeds=measured
    )
    judged = estimate(config, [HUMAN], BENCHMARKS, settings=settings("r"), speeds=measured, dev_texts=1000)
    assert known.measured
    # A document in two pairs of a batch is encoded once: 20 of 160 pairs hold 80 × (1 − 0.875²) different ones.
    assert twice.seconds - known.seconds == pytest.approx(90 * (20 + 18.75) / 100)
    assert judged.seconds - known.seconds == pytest.approx(2 * 3), "two trainings, three looks at dev"


def test_what_the_plan_warns_of() -> None:
    notes = " ".join(
        estimate(plan(per_doc="2, 3", seeds="0"), [HUMAN], BENCHMARKS, settings=settings(), speeds={}).notes
    )
    assert "20 of 100 documents have 3 queries" in notes
    assert "With one seed" in notes
    assert "Without Q/Doc 1" in notes


def test_designs_and_what_they_leave_mixed() -> None:
    assert plan().held_equal == "equal documents"
    assert plan(budget=100).held_equal == "equal pairs"
    for wrong in ({"design": "equal pairs"}, {"design": "equal documents", "budget": 10}):
        with pytest.raises(ConfigError, match="budget"):
            plan(**wrong)
    for design, values in {"Equal documents and steps": {}, "Equal pairs and steps": {"budget": 60}}.items():
        notes = estimate(plan(**values), [HUMAN], BENCHMARKS, settings=settings(), speeds={}).notes
        assert any(note.startswith(design) for note in notes)


def test_every_training_takes_the_steps_of_the_largest_and_never_too_few() -> None:
    """One query per document was trained for 3 steps and five for 27: the length of training was compared."""
    found = settings(epochs=30)["static-minilm"]
    assert steps_of(plan(per_doc="1, 2"), [HUMAN], found) == 160 // 20 * 30
    assert steps_of(plan(per_doc="1"), [HUMAN], found) == 100 // 20 * 30
    assert steps_of(plan(per_doc="1, 2"), [HUMAN], settings()["static-minilm"]) == LEAST_STEPS
    assert steps_of(plan(per_doc="1, 2", steps=7), [HUMAN], found) == 7


def test_a_budget_that_the_set_cannot_meet_is_told_before_the_start() -> None:
    told = problems_of_budget(plan(budget=90, per_doc="1, 3"), HUMAN)
    assert "90 pairs at Q/Doc 3 take 30 documents with 3 queries each, and there are 20" in told
    assert problems_of_budget(plan(budget=60, per_doc="1, 2, 3"), HUMAN) == ""


def test_documents_and_pairs_are_held_equal_side_by_side() -> None:
    both = plan(design="documents and pairs", max_documents=40, per_doc="1, 3", seeds="0")
    source = StudySource("most", "most", "set", "", 100, (100, 60, 50))
    assert [(c.condition.per_doc, c.max_documents, c.budget, c.condition.held) for c in conditions(both, [source])] == [
        (1, 40, None, ""),
        (3, 40, None, ""),
        (3, 14, 40, EQUAL_PAIRS),
    ]
    few = StudySource("few", "few", "set", "", 30, (30, 30, 30))
    assert conditions(both, [few])[-1].budget == 30, "no more pairs than there are documents"
    assert [c.condition.held for c in conditions(both, [HUMAN])] == ["", ""], "too few documents have three queries"
    assert [c.condition.per_doc for c in conditions(both, [StudySource("one", "human", "set", "", 30, (30,))])] == [1]
    with pytest.raises(ConfigError, match="need 'max_documents'"):
        plan(design="documents and pairs")


def test_the_plan_doubts_a_language_in_which_queries_have_no_content_words() -> None:
    spoken = [{**b, "name": "a", "language": "zh", "empty": 0.9} for b in BENCHMARKS]
    notes = estimate(plan(), [HUMAN], spoken, settings=settings(), speeds={}).notes
    assert any("a: 90% of the queries have no content word when counted as zh" in note for note in notes)


def test_learning_rates_are_a_list_and_a_sweep_is_a_plan_of_them() -> None:
    config = plan(learning_rate="1e-5, 2e-7;5e-07", training="clip_norm=0.5, lora_rank=4")
    assert config.rates == [2e-7, 5e-7, 1e-5]
    assert plan().rates == [None]
    found = conditions(config, [HUMAN])
    assert len(found) == 3 * len(conditions(plan(), [HUMAN]))
    assert found[0].condition.rate == 2e-7
    assert "learning rate 2e-7" in str(found[0])
    trained = training_config(config, found[0], "set-1")
    assert (trained.learning_rate, trained.loop.clip_norm, trained.loop.lora_rank) == (2e-7, 0.5, 4)
    for wrong, words in (("1e-5,x", "numbers, not 'x'"), ("0,1e-5", "at least 1e-12"), ("1e-5,2", "at most 1")):
        with pytest.raises(ConfigError, match=words):
            plan(learning_rate=wrong)
    assert grid(2e-6) == grid(5e-6) == RATES
    assert grid(5e-3) == tuple(pytest.approx(5e-3 * factor) for factor in AROUND)


def test_a_short_run_is_evaluated_three_times() -> None:
    every = [eval_steps_of(TrainingConfig(query_set="any"), steps) for steps in (5000, 2500, 499, 18, 5, 1)]
    assert every == [500, 500, 167, 6, 2, 1]
