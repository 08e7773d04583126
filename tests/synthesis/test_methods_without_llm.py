"""DRAGON-S in both variants: sentences by a cross-encoder's score, and sentences labelled by teachers in sequence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdp import query_sets
from cdp.base.errors import ConfigError, ModelError
from cdp.base.failures import Failures
from cdp.base.records import Document
from cdp.base.worker import Job, Stopped
from cdp.query_sets.exports import export
from cdp.retrievers import encode as encoding
from cdp.synthesis.methods import METHODS
from cdp.synthesis.ranking import distinct_sentences, label_corpus, labels
from cdp.synthesis.run import SynthesisRun
from tests.support_models import tiny_static
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.models import tiny_cross_encoder

WORDS = ["basalt", "granite", "marble", "slate", "quartz", "gypsum", "chalk", "flint", "amber", "coal", "tin", "zinc"]


def rows(n: int) -> list[tuple[str, str, str]]:
    """Documents of three sentences each, no sentence twice."""

    def sentence(i: int, k: int) -> str:
        return f"The {WORDS[(i * 3 + k) % 12]} of place {i} is kept in hall number {i * 7 + k}."

    return [(f"d{i}", "", " ".join(sentence(i, k) for k in range(3))) for i in range(n)]


def ranked_lines(job: Job, result: dict[str, object]) -> list[dict[str, object]]:
    path = query_sets.files(job.workspace, str(result["query_set"])).rankings
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_both_say_how_far_apart_the_published_scores_are() -> None:
    for name in ("dragon_s_paper", "dragon_s_faithful"):
        assert "46.8" in METHODS[name].note
        assert "7.83" in METHODS[name].note


@pytest.mark.slow
def test_the_papers_variant_keeps_the_sentences_that_the_cross_encoder_prefers(
    tmp_path: Path, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    from sentence_transformers import CrossEncoder

    ranker = tiny_cross_encoder(tmp_path)
    corpus = make_corpus(rows=rows(5))
    job = make_job(corpus=corpus.id, method="dragon_s_paper", per_doc=2, ranker=str(ranker))
    result = SynthesisRun(job).execute()
    encoder = CrossEncoder(str(ranker), device="cpu")
    for line, (_, _, text) in zip(query_sets.iter_lines(job.workspace, result["query_set"]), rows(5), strict=True):
        own = [f"{part.rstrip('.')}." for part in text.split(". ")]
        scores = encoder.predict([(sentence, text) for sentence in own], show_progress_bar=False)
        assert line["queries"] == [own[place] for place in np.argsort(-scores, kind="stable")[:2]]
    manifest = query_sets.load(job.workspace, result["query_set"])
    assert (manifest.generator, manifest.model) == ("cropping", str(ranker))
    assert result["cost"] is None


@pytest.mark.slow
def test_a_cross_encoder_that_cannot_serve_is_named(
    tmp_path: Path, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    corpus = make_corpus(2)
    with pytest.raises(ModelError, match="cannot be loaded"):
        SynthesisRun(make_job(corpus=corpus.id, method="dragon_s_paper", ranker=str(tmp_path / "no"))).execute()
    many = tiny_cross_encoder(tmp_path, labels=3)
    with pytest.raises(ModelError, match="3 scores per pair"):
        SynthesisRun(make_job(corpus=corpus.id, method="dragon_s_paper", ranker=str(many))).execute()


@pytest.mark.slow
def test_the_published_method_labels_every_sentence_by_each_teacher(
    tmp_path: Path, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    from sentence_transformers import SentenceTransformer

    teachers = [tiny_static(tmp_path / name, seed=seed) for seed, name in enumerate(("first", "second"))]
    given = rows(60)
    corpus = make_corpus(rows=given)
    job = make_job(corpus=corpus.id, method="dragon_s_faithful", per_doc=4, teachers=", ".join(map(str, teachers)))
    result = label_corpus(job)
    lines = ranked_lines(job, result)
    assert len(lines) == 2 * 180
    assert [line["teacher"] for line in lines] == [str(teachers[0])] * 180 + [str(teachers[1])] * 180
    for teacher, own in ((teachers[0], lines[:180]), (teachers[1], lines[180:])):
        model = SentenceTransformer(str(teacher), device="cpu")
        documents = model.encode([text for _, _, text in given], normalize_embeddings=True)
        for line in own[::17]:
            scores = documents @ model.encode(line["query"], normalize_embeddings=True)
            order = np.argsort(-scores, kind="stable")
            assert len(line["positives"]) == 10
            assert len(line["negatives"]) == 5
            worst = min(scores[int(d[1:])] for d in line["positives"])
            assert worst >= scores[order[9]] - 1e-5
            assert all(scores[order[49]] - 1e-5 <= scores[int(d[1:])] <= scores[order[45]] + 1e-5
                       for d in line["negatives"])  # fmt: skip
    seen: dict[str, list[tuple[int, int, str]]] = {}
    for place, line in enumerate(lines):
        for rank, document_id in enumerate(line["positives"]):
            seen.setdefault(document_id, []).append((rank, place, str(line["query"])))
    for line in query_sets.iter_lines(job.workspace, result["query_set"]):
        expected = list(dict.fromkeys(query for _, _, query in sorted(seen[line["document_id"]])))[:4]
        assert line["queries"] == expected
    assert result["n_documents"] + result["failures"] == 60
    assert result["sentences"] == 180
    assert result["with_negatives"]
    target = tmp_path / "ranked.jsonl"
    assert export(job.workspace, str(result["query_set"]), "flagembedding", target) == 360
    texts = {name: text for name, _, text in given}
    for line, written in zip(lines, target.read_text(encoding="utf-8").splitlines(), strict=True):
        assert json.loads(written) == {
            "query": line["query"],
            "pos": [texts[name] for name in line["positives"]],
            "neg": [texts[name] for name in line["negatives"]],
            "pos_id": line["positives"],
            "neg_id": line["negatives"],
        }


@pytest.mark.slow
def test_a_stopped_ranking_encodes_nothing_twice(
    tmp_path: Path, make_corpus: CorpusMaker, make_job: JobMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []
    encode = encoding.encode

    def counting(model: Any, texts: list[str], *rest: Any, **more: Any) -> Any:
        encoded.append(len(texts))
        return encode(model, texts, *rest, **more)

    monkeypatch.setattr(encoding, "encode", counting)
    corpus = make_corpus(rows=rows(12))
    job = make_job(
        corpus=corpus.id, method="dragon_s_faithful", per_doc=3, teachers=str(tiny_static(tmp_path / "teacher"))
    )

    class StopAfterTheDocuments(Job):
        def stop_requested(self) -> bool:
            return bool(encoded) and self._state["unit"] == "sentences"

    with pytest.raises(Stopped):
        label_corpus(StopAfterTheDocuments(job.folder))
    (left,) = query_sets.list_query_sets(job.workspace)
    assert not left.complete
    result = label_corpus(job)
    assert result["complete"]
    assert encoded == [12, 36]
    assert query_sets.load(job.workspace, left.id).content_hash


def test_sentences_are_taken_once_and_long_ones_counted() -> None:
    documents = [
        Document("a", "It rains here a lot. It rains here a lot! It never snows here."),
        Document("b", "x" * 500 + "."),
    ]
    found, too_long = distinct_sentences(documents, Failures())
    assert [text for _, text in found] == ["It rains here a lot.", "It never snows here."]
    assert too_long == 1


def test_labels_come_by_rank_then_by_teacher() -> None:
    of_first, of_second = [[1, 0], [0, 1]], [[0, 2], [1, 0]]
    found = labels(np.array([of_first, of_second], np.int32), 5)
    assert found == {0: [1, 0], 1: [0, 1], 2: [0]}


def test_no_teacher_is_a_configuration_error(make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    for teachers in (" , ", "minilm, api:m@http://localhost/v1"):
        with pytest.raises(ConfigError, match="needs a teacher on this machine"):
            label_corpus(make_job(corpus=make_corpus(2).id, method="dragon_s_faithful", teachers=teachers))
