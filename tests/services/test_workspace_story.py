"""The services as the dashboard uses them: demo, corpora, previews, plans, the next step, the doctor."""

from __future__ import annotations

import io
import json

import pytest

from cdp.base.config import SynthesisConfig, TrainingConfig
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.workspace import Workspace
from cdp.corpus import looking
from cdp.services import adding, commands, corpora, demo, doctor, metrics, queries, training
from cdp.studies import target_queries


@pytest.mark.slow
def test_the_demo_is_loaded_once(workspace: Workspace) -> None:
    assert len(demo.load(workspace)) == 6
    assert demo.load(workspace) == []
    assert {(q.name, q.kind, q.generator, q.n_queries) for q in queries.list_query_sets(workspace)} == {
        ("demo diverse", "synthetic", "recorded", 768),
        ("demo paraphrase", "synthetic", "recorded", 768),
    }


def test_an_upload_is_read_and_leaves_nothing_behind(workspace: Workspace) -> None:
    data = io.BytesIO(b'{"_id": "1", "text": "Salt keeps food."}\n')
    with adding.received(workspace, [("../../salt.jsonl", data)]) as (path, _):
        assert path.is_relative_to(workspace.uploads)
        added = corpora.add(workspace, path)
    assert (added.corpus.n_documents, added.corpus.name) == (1, "salt")
    assert list(workspace.uploads.iterdir()) == []


def test_the_same_content_is_stored_once(workspace: Workspace) -> None:
    for name, existed in (("one", False), ("two", True)):
        with adding.received(workspace, [("a.jsonl", io.BytesIO(b'{"_id": "1", "text": "Salt."}\n'))]) as (path, _):
            assert corpora.add(workspace, path, name=name).existed is existed
    assert [c.name for c in corpora.list_corpora(workspace)] == ["one"]


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_a_corpus_with_query_sets_is_not_deleted(workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match="2 query sets"):
        corpora.delete(workspace, "demo")
    for found in queries.list_query_sets(workspace):
        queries.delete(workspace, found.id)
    corpora.delete(workspace, "demo")
    assert corpora.list_corpora(workspace) == []


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_preview_of_recorded_and_template_queries(workspace: Workspace) -> None:
    first = looking.page(workspace, "demo", 0, 1)[0]
    for generator in ("recorded", "template"):
        found = queries.preview(workspace, "demo", first.id, per_doc=8, generator=generator)
        assert set(found) == {"diverse", "paraphrase"}
        for preview in found.values():
            assert len(preview.queries) == len(set(preview.queries)) == len(preview.cw) == 8
            assert preview.self_bleu is not None
    with pytest.raises(NotFoundError, match="no-such-document"):
        queries.preview(workspace, "demo", "no-such-document")
    with pytest.raises(ConfigError, match="at most 20"):
        queries.preview(workspace, "demo", first.id, per_doc=21)


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_quick_metrics_separate_diverse_from_paraphrase_and_are_kept(workspace: Workspace) -> None:
    values = {}
    for name in ("demo diverse", "demo paraphrase"):
        quick = metrics.quick(workspace, name)
        assert metrics.quick(workspace, name) == quick
        values[name] = next(m.value for m in quick.measures if m.name == "self_bleu")
    assert values["demo diverse"] < values["demo paraphrase"]
    with_human = metrics.quick(workspace, "demo diverse", human="demo paraphrase")
    assert any(m.name == "len_sim" for m in with_human.measures)


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_the_recommendation_for_training_queries_says_what_they_are(workspace: Workspace) -> None:
    for_set = target_queries.profile_query_set(workspace, "demo diverse").recommend()
    assert "training queries" in for_set.caveats[0]
    for_task = target_queries.profile_benchmark(workspace, "demo").recommend()
    assert not any("training queries. The rule" in caveat for caveat in for_task.caveats)


def test_pasted_queries(workspace: Workspace) -> None:
    found = target_queries.profile_texts(["what is salt?", "", "  ", "how does salt keep food from rotting?"])
    assert found.cw.tolist() == [1, 4]
    with pytest.raises(InputError, match="no queries"):
        target_queries.profile_texts(["", " "])


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_a_plan_counts_pairs_and_steps(workspace: Workspace) -> None:
    config = TrainingConfig.from_dict({"query_set": "demo diverse", "per_doc": 2, "epochs": 3, "batch_size": 50})
    plan = training.plan(workspace, config)
    assert (plan.pairs, plan.documents, plan.steps) == (192, 96, 9)
    assert any("leaves out 42 pairs" in note for note in plan.notes)
    assert plan.settings.learning_rate is not None
    assert not any("CW weights" in note for note in plan.notes)
    (note,) = (n for n in training.plan(workspace, config.replace(weighting="cw")).notes if n.startswith("CW weights"))
    assert note.endswith("(standard deviation).") or "too narrow to matter much" in note
    with pytest.raises(NotFoundError, match="no such thing"):
        training.plan(workspace, TrainingConfig.from_dict({"query_set": "no such thing"}))


def test_commands_are_what_a_shell_takes() -> None:
    config = SynthesisConfig.from_dict({"corpus": "my corpus", "per_doc": 3, "seed": 7})
    line = commands.line("queries", "generate", config=config, wait=True)
    assert "--corpus 'my corpus'" in line
    assert "--seed 7" in line
    assert "temperature" not in line
    training = TrainingConfig.from_dict({"query_set": "q", "epochs": 2, "gradient_checkpointing": False})
    line = commands.line("train", "q", config=training, without=("query_set",), evaluate=["a:test", "b"], wait=True)
    assert line == "python -m cdp train q --epochs 2 --no-gradient-checkpointing --evaluate a:test --evaluate b --wait"


@pytest.mark.slow
def test_the_doctor_finds_this_machine_well(workspace: Workspace) -> None:
    checks = {check.name: check for check in doctor.check(workspace)}
    assert checks["embedded model"].ok
    assert checks["workspace"].ok
    assert checks["catalogue"].ok
    json.dumps([check.text for check in checks.values()])
