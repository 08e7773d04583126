"""Training the upper layers alone: equal to ordinary training with the others frozen, from states that are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder, SentenceTransformer, SparseEncoder
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

from cdp.base.errors import ConfigError
from cdp.base.workspace import REPOSITORY, Workspace, read_json
from cdp.retrievers import MULTI_VECTOR, SPARSE
from cdp.retrievers.encode import Encoding, embed
from cdp.training.engine import Batches, TransformerEngine
from cdp.training.infonce import WeightedInfoNCE
from cdp.training.loop import loss_for
from cdp.training.lower_layers import LowerLayers, freeze_below
from cdp.training.tokens import tokenise
from tests.support import work
from tests.support_models import tiny_multi_vector, tiny_retriever, tiny_sparse
from tests.training.conftest import write_benchmark, write_job
from tests.training.test_engine import DOCUMENT_OF, DOCUMENTS, QUERIES, ROWS, WEIGHTS

PROMPT = "find: "


@pytest.fixture
def model(tmp_path: Path) -> SentenceTransformer:
    folder = tiny_retriever(tmp_path / "tiny", layers=4)
    return SentenceTransformer(str(folder), device="cpu").eval()


def gradients(
    model: SentenceTransformer,
    batches: Batches,
    mini_batch: int | None,
    loss: WeightedInfoNCE | None = None,
) -> tuple[float, dict[str, torch.Tensor]]:
    model.zero_grad(set_to_none=True)
    engine = TransformerEngine(model, batches, loss or WeightedInfoNCE(20.0), mini_batch=mini_batch)
    value = float(engine.backward(ROWS))
    return value, {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def with_states(model: SentenceTransformer, root: Path, dtype: type = np.float16, **more: int) -> Batches:
    lower = LowerLayers(model, 2, root, "identity", dtype=dtype, **more)
    queries = lower.states(QUERIES, PROMPT, tokenise(model, QUERIES, PROMPT))
    return Batches(queries, lower.states(DOCUMENTS, "", tokenise(model, DOCUMENTS)), DOCUMENT_OF, WEIGHTS)


def ordinary(model: SentenceTransformer) -> Batches:
    return Batches(tokenise(model, QUERIES, PROMPT), tokenise(model, DOCUMENTS), DOCUMENT_OF, WEIGHTS)


@pytest.mark.parametrize("mini_batch", [None, 3])
def test_loss_and_gradients_are_those_of_training_with_frozen_layers(
    model: SentenceTransformer, tmp_path: Path, mini_batch: int | None
) -> None:
    freeze_below(model, 2)
    loss, expected = gradients(model, ordinary(model), mini_batch)
    assert {name.split("layer.")[1][0] for name in expected} == {"2", "3"}

    exact, found = gradients(model, with_states(model, tmp_path / "exact", np.float32), mini_batch)
    assert exact == pytest.approx(loss, abs=1e-5)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-5, atol=1e-5)

    _, rounded = gradients(model, with_states(model, tmp_path / "half"), mini_batch)
    one, other = (torch.cat([g[name].flatten() for name in expected]) for g in (expected, rounded))
    assert torch.nn.functional.cosine_similarity(one, other, dim=0) >= 0.999


def test_the_frozen_layers_have_no_dropout_and_the_others_have_theirs(tmp_path: Path) -> None:
    model = SentenceTransformer(str(tiny_retriever(tmp_path / "tiny", layers=4, dropout=0.3)), device="cpu")
    freeze_below(model, 2)
    model.train()

    batches = with_states(model, tmp_path / "states", np.float32)
    again = with_states(model, tmp_path / "again", np.float32)
    rows = np.arange(3)
    states = [b.queries.features(rows)["inputs_embeds"] for b in (batches, again)]
    torch.testing.assert_close(states[0], states[1], rtol=0, atol=0)

    first, second = (gradients(model, batches, None)[0] for _ in range(2))
    assert first != second


def test_kept_states_are_read_and_not_computed_again(
    model: SentenceTransformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freeze_below(model, 2)
    expected = gradients(model, with_states(model, tmp_path), None)

    def never(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(LowerLayers, "_computed", never)
    found = gradients(model, with_states(model, tmp_path), None)
    assert found[0] == expected[0]


@pytest.mark.parametrize("damage", ["cut data", "cut listing", "no data", "listing of another part"])
def test_a_damaged_part_is_made_again(model: SentenceTransformer, tmp_path: Path, damage: str) -> None:
    freeze_below(model, 2)
    expected = gradients(model, with_states(model, tmp_path), None)
    (listing, *_), *_ = [sorted(tmp_path.glob("*/*.texts.npy"))]
    data = listing.with_name(listing.name.replace(".texts.npy", ".npy"))
    match damage:
        case "cut data":
            data.write_bytes(data.read_bytes()[:-7])
        case "cut listing":
            listing.write_bytes(listing.read_bytes()[:-7])
        case "no data":
            data.unlink()
        case _:
            other = sorted(tmp_path.glob("*/*.texts.npy"))[1]
            listing.write_bytes(other.read_bytes())

    assert gradients(model, with_states(model, tmp_path), None)[0] == expected[0]


def test_without_room_the_states_are_computed_at_each_step(model: SentenceTransformer, tmp_path: Path) -> None:
    freeze_below(model, 2)
    expected, _ = gradients(model, with_states(model, tmp_path / "room"), None)
    found, _ = gradients(model, with_states(model, tmp_path / "none", limit=0), None)
    assert found == pytest.approx(expected, abs=1e-4)
    assert list((tmp_path / "none").rglob("*.npy")) == []


def test_the_states_of_the_model_that_was_used_longest_ago_leave_first(
    model: SentenceTransformer, tmp_path: Path
) -> None:
    freeze_below(model, 2)
    root = tmp_path / "states"
    for age, name in ((300, "oldest"), (200, "older")):
        (root / name).mkdir(parents=True)
        (root / name / "part.npy").write_bytes(bytes(100_000))
        os.utime(root / name, times=(1e9 - age, 1e9 - age))
    with_states(model, root, limit=150_000)
    assert (root / "older").exists()
    assert not (root / "oldest").exists()


def test_embeddings_are_those_of_the_model(model: SentenceTransformer, tmp_path: Path) -> None:
    freeze_below(model, 2)
    lower = LowerLayers(model, 2, tmp_path, "identity", dtype=np.float32)
    expected = model.encode_query(QUERIES, prompt=PROMPT)
    for _ in range(2):
        np.testing.assert_allclose(lower.embed(QUERIES, PROMPT, 2), expected, atol=1e-5)


def of_kind(kind: str, folder: Path) -> Any:
    """A tiny model of two layers; late interaction leaves "is" out of documents and is projected."""
    if kind == SPARSE:
        return SparseEncoder(str(tiny_sparse(folder)), device="cpu").eval()

    model = MultiVectorEncoder(str(tiny_multi_vector(folder, dim=8)), device="cpu").eval()
    mask = next(module for module in model if isinstance(module, MultiVectorMask))
    mask.skiplist_words = ["is", "about"]
    mask.resolve_with_tokenizer(model.tokenizer)
    return model


@pytest.mark.parametrize("mini_batch", [None, 3])
@pytest.mark.parametrize("kind", [MULTI_VECTOR, SPARSE])
def test_the_other_kinds_train_on_kept_states_as_without(kind: str, mini_batch: int | None, tmp_path: Path) -> None:
    model = of_kind(kind, tmp_path)
    freeze_below(model, 1)
    assert LowerLayers.fits(model)

    tokens = tokenise(model, QUERIES, PROMPT, role="query"), tokenise(model, DOCUMENTS)
    lower = LowerLayers(model, 1, tmp_path / "states", "identity", dtype=np.float32)
    states = lower.states(QUERIES, PROMPT, tokens[0]), lower.states(DOCUMENTS, "", tokens[1])

    loss, expected = gradients(model, Batches(*tokens, DOCUMENT_OF, WEIGHTS), mini_batch, loss_for(model)(1.0))
    exact, found = gradients(model, Batches(*states, DOCUMENT_OF, WEIGHTS), mini_batch, loss_for(model)(1.0))

    assert exact == pytest.approx(loss, rel=1e-5)
    assert set(found) == set(expected)
    assert any("layer.1." in name for name in found)
    assert not any("layer.0." in name for name in found)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("role", ["query", "document"])
@pytest.mark.parametrize("kind", [MULTI_VECTOR, SPARSE])
def test_the_other_kinds_are_evaluated_on_kept_states_as_without(kind: str, role: str, tmp_path: Path) -> None:
    model = of_kind(kind, tmp_path)
    encoding = Encoding("", role, PROMPT, False, None, "fp32", kind)
    expected = embed(model, QUERIES, encoding)

    freeze_below(model, 1)
    model.lower_layers = LowerLayers(model, 1, tmp_path / "states", "identity", dtype=np.float32)
    for _ in range(2):
        found = embed(model, QUERIES, encoding)
        np.testing.assert_array_equal(found.lengths, expected.lengths)
        np.testing.assert_allclose(found.parts[0], expected.parts[0], rtol=1e-3, atol=1e-5)


def test_more_layers_than_there_are_are_refused(model: SentenceTransformer) -> None:
    with pytest.raises(ConfigError, match="the model has 4 layers"):
        freeze_below(model, 5)


def settings(query_set: str, folder: Path) -> dict[str, object]:
    return {
        "query_set": query_set, "retriever": str(folder), "batch_size": 8, "learning_rate": 1e-3, "epochs": 2,
        "gpus": 0, "benchmark": "judged", "eval_steps": 4, "trained_layers": 1,
    }  # fmt: skip


@pytest.mark.slow
def test_a_training_job_keeps_the_lower_layers_as_they_were(
    workspace: Workspace, query_set: str, tmp_path: Path
) -> None:
    folder = tiny_retriever(tmp_path / "tiny")
    write_benchmark(workspace, "judged", dev=range(12))
    job = write_job(workspace, "one", **settings(query_set, folder))
    assert work("cdp.workers.training", job) == 0

    base = SentenceTransformer(str(folder), device="cpu").state_dict()
    trained = SentenceTransformer(str(job / "model"), device="cpu").state_dict()
    changed = {name for name, value in base.items() if not torch.equal(value, trained[name])}
    assert changed
    assert all(".layer.1." in name for name in changed)
    assert list(workspace.layers.rglob("*.texts.npy"))
    assert len(read_json(job / "results" / "training.json")["evaluations"]) >= 2


@pytest.mark.soak
@pytest.mark.slow
def test_two_processes_train_the_same_upper_layers(workspace: Workspace, query_set: str, tmp_path: Path) -> None:
    folder = tiny_retriever(tmp_path / "tiny")
    write_benchmark(workspace, "judged", dev=range(12))
    launcher = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
        "-m", "cdp.workers.training",
    ]  # fmt: skip
    jobs = [write_job(workspace, name, **settings(query_set, folder)) for name in ("one", "two")]
    assert work("cdp.workers.training", jobs[0]) == 0
    done = subprocess.run([*launcher, str(jobs[1])], cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    models = [SentenceTransformer(str(job / "model"), device="cpu") for job in jobs]
    texts = ["what is a glacier", "all about the volcano"]
    torch.testing.assert_close(*(m.encode(texts, convert_to_tensor=True) for m in models), rtol=1e-3, atol=1e-3)
