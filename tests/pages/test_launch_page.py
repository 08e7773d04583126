"""Launch: which pairs, what it takes, and what is refused until a yes."""

from __future__ import annotations

import dataclasses

import pytest
from streamlit.testing.v1 import AppTest

from cdp import query_sets
from cdp.base.workspace import Workspace, write_json
from cdp.corpus import open_corpus
from cdp.query_sets import QuerySet
from cdp.services import demo, queries
from cdp.training import plan as training_plan
from cdp.ui.shell.tables import JOINER
from tests.pages.conftest import Open
from tests.pages.support import ended_job
from tests.support import iter_queries, judged_queries


def metrics(at: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in at.metric}


def test_what_an_llm_wrote_comes_before_a_template_and_the_corpus_at_hand_before_others() -> None:
    def made(name: str, corpus: str, generator: str, method: str) -> QuerySet:
        return QuerySet(name, name, corpus, "", generator=generator, method=method)

    newest_first = [
        made("template", "a", "template", "diverse"),
        made("reasoned", "a", "openai", "reasoning"),
        made("other", "b", "openai", "diverse"),
        made("paraphrase", "a", "openai", "paraphrase"),
        made("llm", "a", "openai", "diverse"),
    ]
    first = ["llm", "paraphrase", "template", "reasoned", "other"]
    assert [q.id for q in training_plan.in_order(newest_first)] == first
    assert [q.id for q in training_plan.in_order(newest_first, "b")] == ["other", *first[:-1]]
    assert training_plan.in_order([]) == []


def test_each_default_of_a_preset_tells_its_reason_on_hover_and_lora_has_its_own_rate(
    open_page: Open, filled: Workspace
) -> None:
    at = open_page("launch", retriever="minilm")
    field = at.number_input(key="train_learning_rate")
    assert "Usual for fine-tuning MiniLM" in field.help.replace("\\", "")
    assert field.proto.placeholder == "2e-05"
    for name, words in (("batch_size", "more negatives"), ("epochs", "one pass moves it"), ("scale", "temperature")):
        assert words in at.number_input(key=f"train_{name}").help.replace("\\", "")
    at.number_input(key="train_lora_rank").set_value(8).run()
    rate = at.number_input(key="train_learning_rate")
    assert rate.proto.placeholder == "0.0001"
    assert "With LoRA" in rate.help


def test_only_settings_that_have_an_effect_are_asked_for(open_page: Open, filled: Workspace) -> None:
    def labels(at: AppTest) -> set[str]:
        return {w.label for w in (*at.number_input, *at.text_input, *at.selectbox)}

    at = open_page("launch")
    assert not {"κ", "RI κ", "Reasoning", "Weights"} & labels(at)
    assert "GPUs" in labels(at)
    at.segmented_control(key="train_weighting").set_value("cw").run()
    assert {"κ", "RI κ", "Weights"} & labels(at) == {"κ"}
    at.segmented_control(key="train_weighting").set_value("ri").run()
    assert {"κ", "RI κ", "Weights", "Reasoning"} & labels(at) == {"RI κ", "Reasoning"}


def test_settings_that_a_kind_of_retriever_lacks_are_not_asked_for(open_page: Open, filled: Workspace) -> None:
    layers = {"train_lora_rank", "train_trained_layers", "train_mini_batch"}
    sparsity = {"train_query_sparsity", "train_document_sparsity"}
    at = open_page("launch", retriever="minilm-sparse")
    shown = {"static-minilm": set(), "minilm": layers, "minilm-multi": layers, "minilm-sparse": layers | sparsity}
    at.number_input(key="train_query_sparsity").set_value(0.5).run()

    for retriever, wanted in shown.items():
        at.selectbox(key="choose_retriever").set_value(retriever).run()
        assert {w.key for w in at.number_input} & (layers | sparsity) == wanted
        assert not at.error
        when = "after training" if retriever == "minilm-sparse" else "before and after"
        assert any(f"Evaluated {when}, beside" in c.value for c in at.caption)


def test_many_epochs_ask_for_a_dev_benchmark_and_it_is_chosen_among_those_that_there_are(
    open_page: Open, filled: Workspace
) -> None:
    at = open_page("launch")
    at.session_state["command-train"] = True
    at.number_input(key="train_epochs").set_value(100).run()
    assert any("set a dev benchmark" in c.value for c in at.caption)
    dev = at.selectbox(key="train_dev")
    assert dev.options == ["none (keep the last model)", "demo · dev (40 queries)", "demo · test (164 queries)"]
    assert "--benchmark" not in next(c.value for c in at.code if "cdp train" in c.value)
    dev.select("demo/dev").run()
    assert not at.exception
    assert "--benchmark demo --split dev" in next(c.value for c in at.code if "cdp train" in c.value)
    assert not any("set a dev benchmark" in c.value for c in at.caption)


def test_a_preset_whose_weights_cannot_be_had_here_still_shows_its_settings(
    open_page: Open, filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    at = open_page("launch", retriever="contriever")
    assert at.number_input(key="train_learning_rate").proto.placeholder == "2e-06"
    assert any("contriever is not on this machine" in e.proto.title for e in at.error)


def test_reasoned_queries_and_a_file_of_weights_are_asked_for_where_they_are_needed(
    open_page: Open, filled: Workspace
) -> None:
    at = open_page("launch")
    at.segmented_control(key="train_weighting").set_value("ri").run()
    assert any("no reasoned queries yet" in c.value for c in at.caption)
    assert any("needs" in e.proto.title and "reasoning" in e.proto.title for e in at.error)
    source = queries.list_query_sets(filled)[0]
    reasoned = dataclasses.replace(source, id="thought", name="thought", method="reasoning")
    write_json(filled.query_set("thought") / "manifest.json", dataclasses.asdict(reasoned))
    at.run()
    assert at.selectbox(key="train_reasoned").value == "thought"
    assert not at.error
    at.segmented_control(key="train_weighting").set_value("column").run()
    assert at.text_input(key="train_weights").value == ""
    assert len(at.error) == 1


def test_learning_rates_to_compare_make_a_sweep(open_page: Open, filled: Workspace) -> None:
    at = open_page("launch")
    at.text_input(key="sweep_rates").set_value("1e-3, 5e-3").run()
    assert len(at.error) == 1
    assert "Start the sweep" not in [b.label for b in at.button]
    at.session_state["command-sweep"] = True
    at.selectbox(key="train_dev").set_value("demo/dev").run()
    assert not at.exception
    assert metrics(at)["Trainings"] == "2"
    assert "Start the sweep" in [b.label for b in at.button]
    command = next(c.value for c in at.code if "cdp sweep" in c.value)
    assert "--benchmark demo --split dev" in command
    assert "--rates 1e-3,5e-3" in command
    at.text_input(key="sweep_rates").set_value("1e-3, fast").run()
    assert not at.exception
    assert len(at.error) == 1
    assert "Start the sweep" not in [b.label for b in at.button]


def test_an_incomplete_set_says_so_and_waits_for_a_yes(open_page: Open, filled: Workspace) -> None:
    query_set = next(q for q in queries.list_query_sets(filled) if q.n_queries)
    ended_job(filled, "synthesis-9", "synthesis", {"corpus": query_set.corpus_id}, outcome="stopped")
    query_sets.update(filled, query_set.id, complete=False, job_id="synthesis-9")
    at = open_page("launch", query_set=query_set.id)
    picked = next(box for box in at.selectbox if box.label == "Query set")
    assert any("(incomplete)" in option for option in picked.options)
    assert any("is incomplete: its job was stopped" in plain(w.value) for w in at.warning)
    assert at.button(key="train_start").disabled
    agreed = next(box for box in at.checkbox if box.label == "Train on this incomplete set")
    agreed.check().run()
    assert not at.exception
    assert not at.button(key="train_start").disabled


def plain(text: str) -> str:
    return text.replace("\\", "").replace(JOINER, "")


def test_judged_queries_are_left_out_by_a_click(open_page: Open, filled: Workspace) -> None:
    """A few queries of a set are a benchmark's own by chance: the others are trained on without a mark."""
    corpus = query_sets.list_query_sets(filled)[0].corpus_id
    ids = open_corpus(filled, corpus).table(columns=["id"]).column("id").to_pylist()
    texts = {name: [f"what is in {name}"] for name in ids}
    texts["fresnel-lens"].append("Who was it that flattened glass for beacons?")
    written = query_sets.import_queries(texts.items(), filled, corpus, "written", kind="synthetic").query_set
    at = open_page("launch", query_set=written.id, retriever="static-minilm")
    at.multiselect(key="choose_benchmarks").set_value(["demo/test"]).run()
    assert at.button(key="train_start").disabled
    at.button(key="leave_out_judged").click().run()
    assert not at.exception
    copy = query_sets.resolve_query_set(filled, "written without judged queries")
    assert [query.text for query in iter_queries(filled, copy.id)] == [f"what is in {name}" for name in ids]


def test_a_benchmark_that_judges_the_queries_is_not_chosen_by_itself(open_page: Open, filled: Workspace) -> None:
    corpus = query_sets.list_query_sets(filled)[0].corpus_id
    tested = judged_queries(filled, demo.FOLDER, corpus, "asked", "test")
    at = open_page("launch", query_set=tested.id, retriever="static-minilm")
    assert not at.exception
    assert at.multiselect(key="choose_benchmarks").value == []
    told = [c.value.replace("\\", "") for c in at.caption]
    assert any("Not selected by default: asked holds" in c and "demo test judges" in c for c in told)
    assert not at.button(key="train_start").disabled
    at.multiselect(key="choose_benchmarks").set_value(["demo/test"]).run()
    assert any("Test leakage" in e.value for e in at.error)
    assert at.button(key="train_start").disabled
    box = next(c for c in at.checkbox if "marked as leaked" in c.label)
    box.check().run()
    assert not at.button(key="train_start").disabled
