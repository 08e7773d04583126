"""Each preset in the training engines: what a step embeds is what a reference written by hand gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cdp.base.config import TrainingConfig
from cdp.retrievers import DENSE, PRESETS, ResolvedRetriever, load
from cdp.retrievers.presets import Retriever
from cdp.training.engine import Batches, TransformerEngine
from cdp.training.loss import WeightedInfoNCELoss
from cdp.training.plan import on_device
from cdp.training.tokens import tokenise
from tests.retrievers.test_presets import QWEN_PROMPT, TEXTS, by_hand, preset_on
from tests.support_models import tiny_bert, tiny_decoder

LONG = "a river of ice " * 60  # 900 characters, beyond the tiny BERT's 128 tokens, so it is cut there
POOLING = {"contriever": ("mean", False), "retromae": ("cls", False), "minilm": ("mean", True)}
SHAPES = {**POOLING, "qwen3-embedding-0.6b": ("lasttoken", True)}


@pytest.mark.slow
@pytest.mark.parametrize("mini_batch", [None, 1])
@pytest.mark.parametrize("name", SHAPES)
def test_a_training_step_embeds_and_scores_as_a_reference_by_hand(
    tmp_path: Path, name: str, mini_batch: int | None
) -> None:
    """Tokenised once, grouped by length, padded on the preset's side, prompted on its side, pooled its way."""
    decoder = name.startswith("qwen")
    folder = tiny_decoder(tmp_path / "model") if decoder else tiny_bert(tmp_path / "model")
    model = load(preset_on(name, folder), "cpu")
    pooling, normalise = SHAPES[name]
    queries, documents = TEXTS, [*TEXTS[1:], "tea"]
    stores = [tokenise(model, t, model.prompts[role]) for role, t in (("query", queries), ("document", documents))]
    engine = TransformerEngine(
        model, Batches(*stores, np.arange(3), np.ones(3)), WeightedInfoNCELoss(None), mini_batch=mini_batch
    )
    rows = np.array([2, 0, 1])
    mask = stores[1].features(rows)["attention_mask"]
    assert len(set(mask.sum(dim=1).tolist())) > 1  # texts of different length, so that there is padding
    assert mask[:, -1 if decoder else 0].tolist() == [1, 1, 1]
    assert 0 in mask[:, 0 if decoder else -1]
    prompt = QWEN_PROMPT if decoder else ""
    expected = [
        torch.stack([by_hand(folder, before + texts[row], pooling, normalise) for row in rows])
        for before, texts in ((prompt, queries), ("", documents))
    ]
    with torch.no_grad():
        for store, reference in zip(stores, expected, strict=True):
            torch.testing.assert_close(engine._embed(store, rows), reference, rtol=1e-4, atol=1e-5)
    q, d = (torch.nn.functional.normalize(e, dim=1) for e in expected)
    by_formula = torch.nn.functional.cross_entropy(20 * q @ d.T, torch.arange(3))
    assert engine.backward(rows).item() == pytest.approx(by_formula.item(), rel=1e-4)


def test_an_overlong_text_is_cut_in_training_as_in_evaluation(tmp_path: Path) -> None:
    model = load(preset_on("contriever", tiny_bert(tmp_path / "model")), "cpu")
    store = tokenise(model, [LONG, "ice"])
    assert store.lengths.tolist()[0] == 128
    engine = TransformerEngine(model, Batches(store, store, np.arange(2), np.ones(2)), WeightedInfoNCELoss(None))
    with torch.no_grad():
        found = engine._embed(store, np.arange(2))
    torch.testing.assert_close(found, model.encode([LONG, "ice"], convert_to_tensor=True), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_gradient_checkpointing_changes_memory_and_not_the_gradients(tmp_path: Path, name: str) -> None:
    folder = tiny_decoder(tmp_path / "model") if name.startswith("qwen") else tiny_bert(tmp_path / "model")
    found = []
    for checkpointing in (False, True):
        model = load(preset_on(name, folder), "cpu").train()
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        stores = [tokenise(model, TEXTS, model.prompts[role]) for role in ("query", "document")]
        engine = TransformerEngine(model, Batches(*stores, np.arange(3), np.ones(3)), WeightedInfoNCELoss(None))
        engine.backward(np.arange(3))
        found.append({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys() != set()
    for key, gradient in found[0].items():
        torch.testing.assert_close(found[1][key], gradient, rtol=1e-4, atol=1e-6)


def test_every_transformer_preset_is_covered() -> None:
    pooled = {name for name, preset in PRESETS.items() if preset.architecture == "transformer" and preset.kind == DENSE}
    assert set(SHAPES) == pooled


@pytest.mark.parametrize("name", ["contriever", "retromae", "qwen3-embedding-0.6b"])
def test_the_paper_s_retrievers_train_in_fp16_with_checkpointing_on_a_gpu(name: str) -> None:
    """As the setup in training_config.json: FP16 mixed precision and gradient checkpointing; on a CPU neither."""
    preset = PRESETS[name]
    assert (preset.defaults["precision"].value, preset.defaults["gradient_checkpointing"].value) == ("fp16", True)
    retriever = found_as(preset)
    config = TrainingConfig(query_set="q", retriever=name)
    assert on_device(config, retriever, "cpu") == config
    found = on_device(config, retriever, "cuda")
    assert (found.loop.precision, found.loop.gradient_checkpointing) == ("fp16", True)
    own = config.replace(precision="bf16", gradient_checkpointing=False)
    assert on_device(own, retriever, "cuda") == own
    assert on_device(config, found_as(PRESETS["minilm"]), "cuda") == config


def found_as(preset: Retriever) -> ResolvedRetriever:
    return ResolvedRetriever(
        preset.name, preset.title, preset.source, True, "preset", preset.similarity, preset.max_length,
        preset.defaults, preset.licence, preset.licence_id, preset,
    )  # fmt: skip
