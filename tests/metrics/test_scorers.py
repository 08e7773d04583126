"""Real models behind the measures: a cross-encoder, the stand-in, an encoder, and what happens without a network."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdp.base.errors import ModelError, NotFoundError
from cdp.base.workspace import Workspace
from cdp.metrics import MEASURES, dist_sim, paraphrase_ratio
from cdp.metrics.scorers import CALIBRATED_THRESHOLD, load_encoder, load_scorer
from cdp.retrievers import spelling
from tests.metrics.models import tiny_cross_encoder
from tests.support_models import tiny_bert, tiny_retriever

pytestmark = pytest.mark.slow


def test_a_cross_encoder_scores_between_0_and_1_whatever_the_batches(workspace: Workspace, tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path / "ce")
    pairs = [("a", "b"), ("what is rust", "how does iron rust"), ("", "🙂"), ("x " * 10_000, "y"), ("\ud83d", "z")]
    one = load_scorer(str(folder), workspace, batch_size=1)
    many = load_scorer(str(folder), workspace, batch_size=64)
    assert (one.measure, one.threshold) == (MEASURES["paraphrase_ratio"], 0.5)
    scores = one.score(pairs)
    assert scores.shape == (5,)
    assert ((scores > 0) & (scores < 1)).all()
    np.testing.assert_allclose(scores, many.score(pairs), atol=1e-5)
    assert one.score([]).shape == (0,)
    assert load_scorer(str(folder), workspace, threshold=0.7).threshold == 0.7


def test_a_model_that_does_not_score_likeness_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="3 scores per pair"):
        load_scorer(str(tiny_cross_encoder(tmp_path / "nli", labels=3)), workspace)
    with pytest.raises(ModelError, match="scores pairs"):
        load_scorer("minilm", workspace)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="holds no model"):
        load_scorer(str(tmp_path / "empty"), workspace)


def test_without_the_hub_auto_falls_back_within_seconds_and_a_named_model_fails_as_fast(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    scorer = load_scorer("auto", workspace)
    assert scorer.measure is MEASURES["paraphrase_ratio_bi_encoder"]
    assert scorer.threshold == CALIBRATED_THRESHOLD
    assert "cannot be reached" in scorer.note
    began = time.monotonic()
    with pytest.raises(ModelError, match="cannot be reached"):
        load_scorer("someone/some-cross-encoder", workspace)
    with pytest.raises(NotFoundError, match="not a name!"):
        load_scorer("not a name!", workspace)
    with pytest.raises(ModelError, match="cannot be reached"):
        load_encoder("someone/some-encoder", workspace)
    assert time.monotonic() - began < 60


def test_the_stand_in_tells_paraphrases_from_other_questions(workspace: Workspace) -> None:
    scorer = load_scorer("bi-encoder", workspace)
    same, other, identical, empty = scorer.score(
        [
            ("How tall is the Eiffel Tower?", "What is the height of the Eiffel Tower?"),
            ("How tall is the Eiffel Tower?", "Who painted the Mona Lisa?"),
            ("rust", "rust"),
            ("", "🙂"),
        ]
    )
    assert same > CALIBRATED_THRESHOLD > other
    assert identical == pytest.approx(1.0)
    assert -1 <= empty <= 1
    assert scorer.score([]).shape == (0,)


def test_recorded_paraphrases_and_diverse_queries_of_the_demo_separate_clearly(workspace: Workspace) -> None:
    import json

    from cdp.base.workspace import SHIPPED_DATA

    ratios = {}
    scorer = load_scorer("bi-encoder", workspace)
    for mode in ("diverse", "paraphrase"):
        path = SHIPPED_DATA / "demo" / "generations" / f"{mode}.jsonl"
        queries = [json.loads(line)["queries"] for line in path.read_text(encoding="utf-8").splitlines()][:8]
        ratios[mode] = paraphrase_ratio(queries, lambda pairs: scorer.score(pairs), scorer.threshold)
    assert ratios["paraphrase"] > 0.65
    assert ratios["diverse"] < 0.3


def test_an_encoder_is_found_by_folder_and_by_job(workspace: Workspace, tmp_path: Path) -> None:
    folder = tiny_retriever(tmp_path / "tiny")
    encode = load_encoder(str(folder), workspace)
    vectors = encode(["one", "two", ""])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    workspace.jobs.mkdir(parents=True)
    (workspace.jobs / "t1").mkdir()
    folder.rename(workspace.jobs / "t1" / "model")
    np.testing.assert_array_equal(load_encoder("t1", workspace)(["one", "two", ""]), vectors)
    assert dist_sim(["one"], ["one"], encode) == pytest.approx(1.0)


def test_every_preset_on_this_machine_encodes(workspace: Workspace) -> None:
    vectors = load_encoder("static-minilm", workspace)(["How tall is it?", "What is its height?", "مرحبا 🙂"])
    assert vectors.shape[0] == 3
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_embeddings_of_minilm(workspace: Workspace) -> None:
    vectors = load_encoder("minilm", workspace)(["How tall is it?", "What is its height?"])
    assert vectors.shape == (2, 384)
    assert vectors[0] @ vectors[1] > 0.6


def test_an_asymmetric_model_reads_queries_with_its_query_side(workspace: Workspace, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Router, Transformer

    sides = [[Transformer(str(tiny_bert(tmp_path / "bert"))), Pooling(32, pooling)] for pooling in ("cls", "mean")]
    model = SentenceTransformer(modules=[Router.for_query_document(*sides)], device="cpu")
    spelling.save(model, tmp_path / "asymmetric")
    of_queries, of_documents = (unit(encode(["one text"])) for encode in (model.encode_query, model.encode_document))
    found = load_encoder(str(tmp_path / "asymmetric"), workspace)(["one text"])
    np.testing.assert_allclose(found, of_queries, atol=1e-5)
    assert not np.allclose(found, of_documents, atol=1e-2)


def unit(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
