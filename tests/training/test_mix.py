"""A training on several query sets at once: their pairs together, each weighted in its own language."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.corpus import read_documents, store
from cdp.services import training
from cdp.training.plan import prepare, trained_on

pytestmark = pytest.mark.slow

DOCUMENTS = {
    "ru": ["Столица Франции — Париж.", "Река Волга впадает в Каспийское море."],
    "zh": ["复旦大学位于上海。", "长城在中国北方。"],
    "fr": ["La tour Eiffel se trouve à Paris.", "Le Rhône se jette dans la mer."],
}
QUERIES = {
    "ru": ["Какая столица у Франции?", "Куда впадает Волга?"],
    "zh": ["复旦大学在哪里？", "长城在中国的哪里？"],
    "fr": ["Pourquoi Paris est célèbre ?", "Quand le Rhône ?"],
}
# Content words by hand: столица, франции / впадает, волга; 复旦大学 / 长城, 中国; paris, célèbre / rhône.
CW = {"ru": [2, 2], "zh": [1, 2], "fr": [2, 1]}


@pytest.fixture
def sets(workspace: Workspace, tmp_path: Path) -> dict[str, str]:
    """A query set in each language, of a corpus of its own."""
    made = {}
    for language, texts in DOCUMENTS.items():
        source = tmp_path / f"{language}.jsonl"
        source.write_text("".join(json.dumps({"_id": f"d{i}", "text": t}) + "\n" for i, t in enumerate(texts)))
        with read_documents(source) as result:
            corpus = store(result, language, workspace).id
        pairs = [(f"d{i}", [query]) for i, query in enumerate(QUERIES[language])]
        found = query_sets.import_queries(iter(pairs), workspace, corpus, language, language=language)
        made[language] = found.query_set.id
    return made


def config_of(sets: dict[str, str], **more: object) -> TrainingConfig:
    return TrainingConfig.from_dict({"query_set": sets["ru"], "beside": [sets["zh"], sets["fr"]], **more})


def test_the_pairs_of_all_sets_are_trained_on_each_weighted_in_its_language(
    workspace: Workspace, sets: dict[str, str]
) -> None:
    data = prepare(config_of(sets, weighting="cw"), workspace)
    assert data.pairs.queries == [query for queries in QUERIES.values() for query in queries]
    assert data.pairs.documents == [text for texts in DOCUMENTS.values() for text in texts]
    assert data.pairs.document_of.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.weights.tolist() == [cw for counts in CW.values() for cw in counts]
    assert data.pairs.query_set.name == "ru + zh + fr"
    assert data.settings.loop.hard_negatives == 0


def test_a_plan_counts_them_all(workspace: Workspace, sets: dict[str, str]) -> None:
    plan = training.plan(workspace, config_of(sets).replace(beside=("zh", "fr")))
    assert (plan.pairs, plan.documents) == (6, 6)
    assert trained_on(plan.settings) == [sets["ru"], sets["zh"], sets["fr"]]


def test_the_same_document_in_two_sets_is_one(workspace: Workspace, sets: dict[str, str]) -> None:
    corpus = query_sets.load(workspace, sets["ru"]).corpus_id
    again = query_sets.import_queries(
        iter([("d0", ["Где столица?"]), ("d1", ["Где море?"])]), workspace, corpus, "again"
    )
    config = TrainingConfig.from_dict({"query_set": sets["ru"], "beside": [again.query_set.id]})
    pairs = prepare(config, workspace).pairs
    assert pairs.document_of.tolist() == [0, 1, 0, 1]
    assert len(pairs.documents) == 2


def test_what_is_of_one_set_is_refused(sets: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="pairs and 'beside'"):
        config_of(sets, pairs=4)


def test_a_question_in_two_sets_has_the_documents_of_both(workspace: Workspace, sets: dict[str, str]) -> None:
    corpus = query_sets.load(workspace, sets["ru"]).corpus_id
    again = query_sets.import_queries(
        iter([("d0", ["Где столица?"]), ("d1", [QUERIES["ru"][0]])]), workspace, corpus, "again"
    )
    config = TrainingConfig.from_dict({"query_set": sets["ru"], "beside": [again.query_set.id]})
    pairs = prepare(config, workspace).pairs
    assert pairs.excluded_indices is not None
    assert pairs.excluded_indices.tolist() == [[1], [-1], [-1], [0]]


def test_passages_beside_each_other_are_no_negatives_also_where_each_has_a_set(
    workspace: Workspace, tmp_path: Path
) -> None:
    source = tmp_path / "manual.jsonl"
    ids = ["manual.pdf#1", "manual.pdf#2", "other.pdf#1"]
    source.write_text("".join(json.dumps({"_id": id, "text": f"Text of {id}."}) + "\n" for id in ids))
    with read_documents(source) as result:
        corpus = store(replace(result, n_cut=2), "manual", workspace).id
    asked = {"first": ["manual.pdf#1", "other.pdf#1"], "second": ["manual.pdf#2", "other.pdf#1"]}
    made = {
        name: query_sets.import_queries(iter([(id, [f"{name}: {id}?"]) for id in of]), workspace, corpus, name)
        for name, of in asked.items()
    }
    first, second = (done.query_set.id for done in made.values())
    pairs = prepare(TrainingConfig.from_dict({"query_set": first, "beside": [second]}), workspace).pairs
    assert pairs.excluded_indices is not None
    named = {pairs.queries[row]: pairs.excluded_indices[row].tolist() for row in range(len(pairs))}
    assert named == {
        "first: manual.pdf#1?": [pairs.documents.index("Text of manual.pdf#2.")], "first: other.pdf#1?": [-1],
        "second: manual.pdf#2?": [pairs.documents.index("Text of manual.pdf#1.")], "second: other.pdf#1?": [-1],
    }  # fmt: skip


def test_a_set_that_is_named_twice_is_refused(workspace: Workspace, sets: dict[str, str]) -> None:
    for beside in (["ru"], [sets["zh"], "zh"]):
        with pytest.raises(ConfigError, match="is named twice"):
            training.plan(workspace, config_of(sets).replace(beside=beside))
