"""Each preset's way from a name to an embedding, with tiny models of its shape, against a reference written by hand."""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from cdp.base.errors import CdpError, ModelError, NotFoundError
from cdp.base.workspace import Workspace, write_json
from cdp.retrievers import PRESETS, PROTOCOLS, ResolvedRetriever, load, model_hash, resolve
from cdp.retrievers.presets import GENERAL_DEFAULTS, minilm_folder
from tests.support_models import tiny_bert, tiny_decoder, tiny_retriever, tiny_static

TEXTS = ["Why do glaciers move?", "a much longer text about rivers of ice that flow down the valleys", "ice"]
QWEN_PROMPT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"  # no space after it
)


def preset_on(name: str, folder: Path) -> ResolvedRetriever:
    """The preset as it is, but with a tiny model in place of the published weights."""
    preset = PRESETS[name]
    return ResolvedRetriever(
        name=name, title=preset.title, source=str(folder), local=True, origin="preset",
        similarity=preset.similarity, max_length=preset.max_length, defaults=preset.defaults, licence=preset.licence,
        preset=preset,
    )  # fmt: skip


@functools.lru_cache(1)
def of_the_library(folder: Path) -> tuple[Any, Any]:
    return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).float().eval()


def by_hand(folder: Path, text: str, pooling: str, normalise: bool) -> torch.Tensor:
    """One text, no padding: hidden states from transformers, pooled as the name says."""
    tokenizer, model = of_the_library(folder)
    with torch.no_grad():
        hidden = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
    vector = {"mean": hidden.mean(0), "cls": hidden[0], "lasttoken": hidden[-1]}[pooling]
    return vector / vector.norm() if normalise else vector


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "pooling", "normalise"),
    [("contriever", "mean", False), ("retromae", "cls", False), ("minilm", "mean", True)],
)
def test_encoders_embed_as_a_reference_by_hand(tmp_path: Path, name: str, pooling: str, normalise: bool) -> None:
    folder = tiny_bert(tmp_path / "bert")
    model = load(preset_on(name, folder), "cpu")
    for encode in (model.encode_query, model.encode_document):
        found = encode(TEXTS, convert_to_tensor=True)  # one padded batch
        for text, vector in zip(TEXTS, found, strict=True):
            torch.testing.assert_close(vector, by_hand(folder, text, pooling, normalise), rtol=1e-4, atol=1e-5)


def test_the_decoder_pads_left_pools_the_last_token_and_prompts_queries_only(tmp_path: Path) -> None:
    folder = tiny_decoder(tmp_path / "decoder")
    model = load(preset_on("qwen3-embedding-0.6b", folder), "cpu")
    assert model.tokenizer.padding_side == "left"
    features = model.preprocess(TEXTS)
    assert features["attention_mask"][2].tolist()[-1] == 1 != features["attention_mask"][2].tolist()[0]
    queries = model.encode_query(TEXTS, convert_to_tensor=True)
    documents = model.encode_document(TEXTS, convert_to_tensor=True)
    for i, text in enumerate(TEXTS):
        expected = by_hand(folder, QWEN_PROMPT + text, "lasttoken", True)
        torch.testing.assert_close(queries[i], expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(documents[i], by_hand(folder, text, "lasttoken", True), rtol=1e-4, atol=1e-5)
    assert float((queries - documents).abs().max()) > 0.01


def test_a_preset_saved_and_loaded_plainly_embeds_the_same(tmp_path: Path) -> None:
    model = load(preset_on("qwen3-embedding-0.6b", tiny_decoder(tmp_path / "decoder")), "cpu")
    model.save(str(tmp_path / "saved"), create_model_card=False)
    plain = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    torch.testing.assert_close(
        plain.encode_query(TEXTS, convert_to_tensor=True), model.encode_query(TEXTS, convert_to_tensor=True)
    )
    assert model_hash(plain) == model_hash(model)


def test_static_minilm_averages_the_word_vectors_of_minilm(workspace: Workspace) -> None:
    model = load(resolve("static-minilm", workspace), "cpu")
    minilm = load(resolve("minilm", workspace), "cpu")
    table = minilm.transformers_model.get_input_embeddings().weight
    text = "Why do glaciers move? " * 100  # far beyond MiniLM's own length: nothing is cut
    ids = minilm.tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(ids) == 500 > 256
    embedded = torch.from_numpy(model.encode([text])[0])
    torch.testing.assert_close(embedded, table[ids].mean(0).detach(), rtol=1e-4, atol=1e-6)
    assert resolve("minilm", workspace).source == str(minilm_folder())


@pytest.mark.parametrize(("asked", "given"), [(40, 40), (4000, 128)])
def test_max_length_is_kept_within_what_the_model_takes(tmp_path: Path, asked: int, given: int) -> None:
    model = load(preset_on("contriever", tiny_bert(tmp_path / "bert")), "cpu", asked)
    assert model.preprocess(["word " * 500])["input_ids"].shape[1] == given


def test_max_length_of_a_static_model_cuts_its_texts(tmp_path: Path, workspace: Workspace) -> None:
    model = load(resolve(str(tiny_static(tmp_path)), workspace), "cpu", 8)
    long, cut = model.encode(["ice " * 50, "ice " * 2 + "ic"])
    torch.testing.assert_close(torch.from_numpy(long), torch.from_numpy(cut))


def test_the_papers_settings_are_the_defaults() -> None:
    paper = {"contriever": (2e-6, 128, 100), "retromae": (5e-6, 128, 100), "qwen3-embedding-0.6b": (5e-6, 32, 20)}
    for name, expected in paper.items():
        preset = PRESETS[name]
        assert tuple(preset.defaults[s].value for s in ("learning_rate", "batch_size", "epochs")) == expected
        assert preset.defaults["scale"].value == 20.0
    assert PRESETS["contriever"].similarity == {"published": "dot", "paper": "cosine"}


@pytest.mark.parametrize("name", PRESETS)
def test_every_default_has_a_reason_and_every_protocol_a_similarity(name: str) -> None:
    preset = PRESETS[name]
    only_on_a_gpu = {"precision", "gradient_checkpointing"}
    assert set(preset.defaults) - only_on_a_gpu == set(GENERAL_DEFAULTS)
    assert all(len(default.reason) > 15 for default in preset.defaults.values())
    assert set(preset.similarity) == set(PROTOCOLS)
    assert preset.licence
    assert preset.help


def test_a_training_jobs_model_is_found_by_its_id_and_is_cosine(tmp_path: Path, workspace: Workspace) -> None:
    write_json(
        workspace.job("j1") / "spec.json", {"id": "j1", "kind": "training", "config": {"retriever": "contriever"}}
    )
    with pytest.raises(ModelError, match="j1 has no model yet"):
        resolve("j1", workspace)
    (tiny_retriever(tmp_path)).rename(workspace.job("j1") / "model")
    found = resolve("j1", workspace)
    assert (found.origin, found.similarity["published"]) == ("job", "cosine")
    assert found.licence == PRESETS["contriever"].licence
    assert load(found, "cpu").encode("ice").shape == (32,)


def test_a_model_trained_from_a_trained_model_keeps_the_terms_and_defaults_of_the_preset_behind_both(
    tmp_path: Path, workspace: Workspace
) -> None:
    model = tiny_retriever(tmp_path)
    for name, base in (("j1", "contriever"), ("j2", "j1"), ("j3", "j2"), ("j4", "j4"), ("j5", str(tmp_path))):
        write_json(workspace.job(name) / "spec.json", {"id": name, "config": {"retriever": base}})
        shutil.copytree(model, workspace.job(name) / "model")
    for name in ("j2", "j3"):
        found = resolve(name, workspace)
        assert (found.licence, found.defaults) == (PRESETS["contriever"].licence, PRESETS["contriever"].defaults)
    for name in ("j4", "j5"):
        assert resolve(name, workspace).defaults == GENERAL_DEFAULTS


def test_a_model_of_another_kind_of_job_is_refused(workspace: Workspace) -> None:
    write_json(workspace.job("e1") / "spec.json", {"id": "e1", "kind": "evaluation", "config": {}})
    with pytest.raises(ModelError, match="evaluation"):
        resolve("e1", workspace)


def test_the_hash_changes_with_weights_and_pooling_only(tmp_path: Path, workspace: Workspace) -> None:
    def loaded(folder: Path) -> SentenceTransformer:
        return load(resolve(str(folder), workspace), "cpu")

    same = [model_hash(loaded(tiny_retriever(tmp_path / n))) for n in ("a", "b")]
    assert same[0] == same[1]
    assert model_hash(loaded(tiny_retriever(tmp_path / "c", seed=1))) != same[0]
    assert model_hash(loaded(tiny_retriever(tmp_path / "d", pooling="cls"))) != same[0]
    shorter = loaded(tmp_path / "a" / "model")
    shorter.max_seq_length = 5
    assert model_hash(shorter) == same[0]


@pytest.mark.parametrize("name", ["foo bar", "", "./nowhere", "a/b/c"])
def test_an_impossible_name_is_said_with_what_there_is(workspace: Workspace, name: str) -> None:
    with pytest.raises(NotFoundError, match="static-minilm"):
        resolve(name, workspace)


def test_an_unknown_hub_name_fails_at_once_without_a_network(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    began = time.monotonic()
    with pytest.raises(CdpError, match="nobody/no-such-model") as raised:
        resolve("nobody/no-such-model", workspace)
    assert isinstance(raised.value, (ModelError, NotFoundError))
    assert time.monotonic() - began < 30  # the library's own retries take minutes
    assert resolve("nobody/no-such-model", workspace, check_hub=False).origin == "hub"


def test_a_folder_without_a_model_and_a_damaged_one_are_named(tmp_path: Path, workspace: Workspace) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"neither modules\.json nor config\.json"):
        resolve(str(tmp_path / "empty"), workspace)
    damaged = tiny_retriever(tmp_path / "tiny")
    (damaged / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(resolve(str(damaged), workspace), "cpu")


def test_replacing_a_preset_is_possible_for_a_fork(tmp_path: Path) -> None:
    """A preset is data: another task in the prompt is another preset, and nothing else changes."""
    preset = dataclasses.replace(PRESETS["qwen3-embedding-0.6b"], prompts={"query": "Find: ", "document": ""})
    resolved = dataclasses.replace(preset_on("qwen3-embedding-0.6b", tiny_decoder(tmp_path / "d")), preset=preset)
    assert load(resolved, "cpu").prompts["query"] == "Find: "


def test_prompts_are_found_under_the_names_models_use(tmp_path: Path) -> None:
    folder = tiny_retriever(tmp_path)
    facts = folder / "config_sentence_transformers.json"
    facts.write_text(json.dumps({**json.loads(facts.read_text()), "prompts": {"query": "Q: ", "passage": "P: "}}))
    model = load(resolve(str(folder), Workspace(tmp_path / "none")), "cpu")
    assert (model.prompts["query"], model.prompts["document"]) == ("Q: ", "P: ")
