"""The model card of a trained retriever holds what was really measured, and is sound Markdown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer

from cdp.base.text import public
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import manifests
from cdp.corpus import read_documents, store
from cdp.evaluation.card import refresh
from cdp.query_sets import import_queries
from cdp.retrievers import PRESETS
from tests.services.upload_hub import metadata_faults
from tests.support import work
from tests.support_models import tiny_retriever
from tests.training.conftest import TOPICS, write_job


def evaluated(
    workspace: Workspace, job: str, retriever: str, model: str, score: float, created: str, **benchmark: str
) -> None:
    """An evaluation as its worker leaves it."""
    write_json(workspace.job(job) / "spec.json", {"id": job, "kind": "evaluation", "config": {"retriever": retriever}})
    result = {
        "retriever": {"id": retriever, "hash": model},
        "benchmark": {"name": "sea", "split": "test", "hash": "b1", **benchmark},
        "protocol": "published",
        "measures": {"ndcg@10": score},
        "created": created,
    }
    write_json(workspace.job(job) / "results" / "evaluation.json", result)


def test_evaluations_before_and_after_come_into_the_card_when_they_are_made(workspace: Workspace) -> None:
    result = {
        "retriever": "minilm", "base_hash": "base", "model_hash": "new", "best_step": 8,
        "settings": {"benchmark": "sea", "split": "dev"},
        "evaluations": [{"step": 4, "ndcg@10": 40.0}, {"step": 8, "ndcg@10": 41.5}],
    }  # fmt: skip
    job = workspace.job("t")
    write_json(job / "results" / "training.json", result)
    refresh(workspace, "t")  # no card yet: nothing to do
    (job / "model").mkdir()
    card = job / "model" / "README.md"
    front, tail = "---\nmodel_name: Sea\nlicense: apache-2.0\ntags:\n- mine\n---\n", "\n\n## Licences\n\nof mine\n"
    head = f"{front}# Sea\n\n## Results\n\n"
    card.write_text(f"{head}Not evaluated yet.{tail}", encoding="utf-8")
    refresh(workspace, "t")
    assert "Not evaluated yet." in card.read_text(encoding="utf-8")

    evaluated(workspace, "e1", "minilm", "base", 0.5, "2026-01-01")
    evaluated(workspace, "e2", "t", "new", 0.61, "2026-01-02")
    evaluated(workspace, "e3", "t", "new", 0.62, "2026-01-03")  # the same once more
    evaluated(workspace, "e4", "t", "earlier attempt", 0.9, "2026-01-04")
    evaluated(workspace, "e5", "another", "new", 0.9, "2026-01-05")
    evaluated(workspace, "e6", "t", "new", 0.7, "2026-01-06", name="lake")
    evaluated(workspace, "e7", "minilm", "base", 0.3, "2026-01-07", name="lake", hash="other content")
    for _ in range(2):
        refresh(workspace, "t")
        text = card.read_text(encoding="utf-8")
        assert "# Sea\n\n## Results\n\n" in text
        assert text.endswith(tail)
        metadata = ModelCard(text).data  # as the hub reads it
        assert (metadata.license, metadata.tags, metadata.model_name) == ("apache-2.0", ["mine"], "Sea")
        assert [(r.dataset_name, r.dataset_split, r.metric_type, r.metric_value) for r in metadata.eval_results] == [
            ("lake/test (published protocol)", "test", "ndcg_at_10", 70.0),
            ("sea/test (published protocol)", "test", "ndcg_at_10", 62.0),
        ]
        assert [line for line in text.splitlines() if line.startswith("|") and "published" in line] == [
            "| lake/test | published | 0 | – | 70.00 | – | – |",
            "| sea/test | published | 0 | 50.00 | 62.00 | – | – |",
        ]
    card.write_text("my own card\n", encoding="utf-8")
    refresh(workspace, "t")
    assert card.read_text(encoding="utf-8") == "my own card\n"


def test_scores_stand_with_their_intervals_and_what_they_are_to_be_read_with(workspace: Workspace) -> None:
    result = {
        "retriever": "/home/somebody/models/base", "base_hash": "base", "model_hash": "new", "best_step": None,
        "settings": {"benchmark": "", "split": ""}, "evaluations": [],
    }  # fmt: skip
    job = workspace.job("t")
    write_json(job / "results" / "training.json", result)
    (job / "model").mkdir()
    card = job / "model" / "README.md"
    card.write_text("---\nlicense: mit\n---\n# Sea\n\n## Results\n\nnone\n\n## Licences\n", encoding="utf-8")
    drawn = workspace.benchmark("bay")
    manifests.write(drawn, manifests.Manifest(subset=manifests.Subset("sea", "b1", "test", 4, 9, 0)))

    def record(name: str, retriever: str, model: str, scores: list[float], **counts: int) -> None:
        job_id, folder = f"{name}-{model}", str(workspace.benchmark(name))
        evaluated(workspace, job_id, retriever, model, sum(scores) / 4, "2026-01-01", name=name, folder=folder)
        path = workspace.job(job_id) / "results" / "evaluation.json"
        value = read_json(path)
        value["benchmark"]["n_queries"] = 4
        value |= {"per_query": {"query_ids": list("abcd"), "ndcg@10": scores}, "counts": counts}
        write_json(path, value)

    record("sea", "/home/somebody/models/base", "base", [0.5, 0.25, 0.0, 0.25])
    record("sea", "t", "new", [1.0, 0.5, 0.0, 0.5], trained_positives=4, judged_positives=4)
    record("bay", "t", "new", [1.0, 1.0, 1.0, 1.0])
    record("leak", "t", "new", [1.0, 1.0, 1.0, 1.0], leaked_queries=3)
    refresh(workspace, "t")
    text = card.read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if " | published | " in line]
    assert [row[-1] for row in rows] == ["a subset of sea |", "leaked |", "in-domain |"]
    assert rows[0][4:6] == ["100.00", "–"]
    assert rows[2][2:4] == ["4", "25.00"]
    assert rows[2][4] == "50.00"
    assert rows[2][5].startswith("+25.00 [+")
    assert "Leaked: 3 of the 4 judged queries" in text
    assert "/home/somebody" not in text
    assert ("sea/test (published protocol, in-domain)", "test", 50.0) in [
        (r.dataset_name, r.dataset_split, r.metric_value) for r in ModelCard(text).data.eval_results
    ]
    names = [r.dataset_name for r in ModelCard(text).data.eval_results]
    assert not any("leak" in name for name in names)  # no leaked score goes to the hub's tables
    assert metadata_faults(text) == []


def test_every_preset_has_a_licence_that_the_hub_knows() -> None:
    assert {p.licence_id for p in PRESETS.values()} <= {"apache-2.0", "mit", "cc-by-nc-4.0", "unknown"}


@pytest.mark.slow
def test_a_card_after_real_measures_and_a_real_training(workspace: Workspace, tmp_path: Path) -> None:
    source = tmp_path / "documents.jsonl"
    lines = [{"_id": f"d{i}", "title": t, "text": f"all about the {t}"} for i, t in enumerate(TOPICS)]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with read_documents(source) as result:
        corpus = store(result, "twelve", workspace, licence="CC BY 4.0.")
    asked = {f"d{i}": [f"what is the {t} made of", f"what is the {t}", f"{t} | pipes"] for i, t in enumerate(TOPICS)}
    query_set = import_queries(asked.items(), workspace, corpus.id, "asked").query_set.id
    model = str(tiny_retriever(tmp_path / "tiny"))
    folder = write_job(
        workspace, "t", query_set=query_set, retriever=model, epochs=2, batch_size=8, learning_rate=1e-3, per_doc=2,
        weighting="cw", lora_rank=2, gpus=0,
    )  # fmt: skip
    assert work("cdp.workers.training", folder) == 0

    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    result = read_json(folder / "results" / "training.json")
    for stated in (
        "| pairs | 24 over 12 documents |",
        "| queries per document | 2 |",
        "| queries | asked, imported, written by unknown: who wrote them was not recorded |",
        "weighting **cw**.",
        "- **Documents**: CC BY 4.0.",
        "| seed | 0 |",
        f"| hash of the query set | `{result['query_set_hash']}` |",
        f"| model hash | `{result['model_hash']}` (from `{result['base_hash']}`) |",
        *(f"\n- {note}\n" for note in result["notes"]),
    ):
        assert stated in card, stated
    assert json.loads(card.split("```json\n")[1].split("```")[0]) == public(result)
    assert str(tmp_path) not in card
    body = card.split("---\n", 2)[2]
    metadata = ModelCard(card).data  # as the hub reads it
    assert metadata.library_name == "sentence-transformers"
    assert metadata.license is None  # a folder's licence is not known
    assert metadata.pipeline_tag == "sentence-similarity"
    assert metadata.language == "en"
    assert {"dataset_size:24", "sentence-transformers"} <= set(metadata.tags)
    assert metadata_faults(card) == []
    for table in body.split("\n\n"):
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len({row.replace("\\|", "").count("|") for row in rows}) <= 1, table  # every row as wide as its header
    plain = SentenceTransformer(str(folder / "model"), device="cpu")
    assert plain.encode_query(["what is the glacier"]).shape == (1, 32)
