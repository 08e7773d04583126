"""Saved models are spelt as sentence-transformers 5 reads them, and 6 reads the same model from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers.base.modules import Dense

from cdp.base.workspace import Workspace
from cdp.retrievers import load, resolve, spelling
from tests.interop.models import ROPE_BASE, TEXTS, VECTORS, save_all
from tests.support_models import tiny_multi_vector, tiny_retriever

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {folder.name: folder for folder in save_all(tmp_path_factory.mktemp("saved"))}


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


def _types(folder: Path) -> list[str]:
    return [module["type"] for module in _json(folder / "modules.json")]


@pytest.mark.parametrize("name", ["static", "mean", "cls", "dense", "decoder"])
def test_modules_have_their_former_names_and_vectors_are_the_same(name: str, saved: dict[str, Path]) -> None:
    assert {kind.rpartition(".")[0] for kind in _types(saved[name])} == {"sentence_transformers.models"}
    model = load(resolve(str(saved[name]), Workspace(saved[name])), "cpu")
    np.testing.assert_allclose(model.encode(TEXTS), np.load(saved[name] / VECTORS), atol=1e-6)


def test_poolings_encoders_and_dense_layers_have_no_new_settings(saved: dict[str, Path]) -> None:
    pooling = _json(saved["cls"] / "1_Pooling" / "config.json")
    assert pooling["word_embedding_dimension"] == 32
    assert [name for name, chosen in pooling.items() if chosen is True] == ["pooling_mode_cls_token", "include_prompt"]
    assert _json(saved["mean"] / "sentence_bert_config.json") == {"max_seq_length": None, "do_lower_case": False}
    assert set(_json(saved["dense"] / "2_Dense" / "config.json")) == {
        "in_features", "out_features", "bias", "activation_function",
    }  # fmt: skip
    tokenizer = _json(saved["mean"] / "tokenizer_config.json")
    assert (tokenizer["tokenizer_class"], tokenizer["model_max_length"]) == ("PreTrainedTokenizerFast", 64)


def test_the_base_of_rotary_positions_stands_where_transformers_4_looks(saved: dict[str, Path]) -> None:
    config = _json(saved["decoder"] / "config.json")
    assert (config["rope_theta"], config["rope_parameters"]["rope_theta"]) == (ROPE_BASE, ROPE_BASE)


def test_settings_that_older_readers_lack_are_kept_and_told(tmp_path: Path) -> None:
    folder = tiny_retriever(tmp_path)
    path = folder / "sentence_bert_config.json"
    new = {**spelling.OF_TEXTS, "processing_kwargs": {"text": {"padding_side": "left"}}}
    path.write_text(json.dumps(new))
    assert not spelling.respell(folder)
    assert _json(path) == new


def test_a_projection_keeps_its_residual_connection(tmp_path: Path) -> None:
    model = load(resolve(str(tiny_multi_vector(tmp_path / "tiny", dim=8)), Workspace(tmp_path)), "cpu")
    model[1] = Dense(32, 8, bias=False, module_input_name="token_embeddings", use_residual=True)
    spelling.save(model, tmp_path / "saved")
    assert [kind.split(".")[0] for kind in _types(tmp_path / "saved")] == ["sentence_transformers", "pylate"]

    again = load(resolve(str(tmp_path / "saved"), Workspace(tmp_path)), "cpu")
    for ours, theirs in zip(model.encode_document(TEXTS[:2]), again.encode_document(TEXTS[:2]), strict=True):
        assert torch.equal(ours, theirs)
