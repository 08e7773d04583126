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
from cdp.evaluation.results import refresh_card
from cdp.metrics import self_bleu
from cdp.query_sets import import_queries
from cdp.query_sets.measured import measured
from cdp.retrievers import PRESETS
from cdp.retrievers.card_results import section
from cdp.training.card import MEASURES
from tests.services.upload_hub import metadata_faults
from tests.support import work
from tests.support_models import tiny_retriever
from tests.training.conftest import TOPICS, write_job


def value(name: str, per_doc: int, number: float | None, scope: str = "document") -> dict[str, object]:
    return {"name": name, "per_doc": per_doc, "value": number, "scope": scope, "n_documents": 9}


def test_the_newest_metrics_at_the_trained_q_doc_are_stated(workspace: Workspace) -> None:
    old = {"query_set": "q", "created": "2026-01-01", "values": [value("self_bleu", 3, 0.9)]}
    new = {
        "query_set": "q",
        "created": "2026-01-02",
        "values": [
            value("self_bleu", 1, None), value("self_bleu", 2, 0.2), value("self_bleu", 3, 0.3),
            value("self_bleu", 3, 0.7, "corpus"), value("paraphrase_ratio", 3, 0.5), value("cw", 3, 6.0),
        ],
    }  # fmt: skip
    other = {**new, "query_set": "other", "created": "2026-01-03"}
    for number, result in enumerate((new, old, other)):
        write_json(workspace.job(f"m{number}") / "results" / "metrics.json", result)
    assert [(v["name"], v["value"]) for v in measured(workspace, "q", MEASURES)] == [
        ("paraphrase_ratio", 0.5),
        ("self_bleu", 0.3),
    ]
    assert [v["value"] for v in measured(workspace, "q", MEASURES, 2)] == [0.2]
    assert measured(workspace, "q", MEASURES, 1) == []
    assert measured(workspace, "unmeasured", MEASURES) == []


def test_what_was_measured_beside_the_set_is_stated_too(workspace: Workspace) -> None:
    kept = {"values": [value("self_bleu", 2, 0.2), value("self_bleu", 3, 0.3), value("cw", 3, 6.0)]}
    write_json(workspace.query_set("q") / "measures" / "0123.json", kept)
    assert [(v["name"], v["value"]) for v in measured(workspace, "q", MEASURES, 2)] == [("self_bleu", 0.2)]
    job = {"query_set": "q", "created": "2026-01-02", "values": [value("paraphrase_ratio", 3, 0.5)]}
    write_json(workspace.job("m") / "results" / "metrics.json", job)
    assert [(v["name"], v["value"]) for v in measured(workspace, "q", MEASURES)] == [
        ("paraphrase_ratio", 0.5),
        ("self_bleu", 0.3),
    ]


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
    refresh_card(workspace, "t")  # no card yet: nothing to do
    (job / "model").mkdir()
    card = job / "model" / "README.md"
    front, tail = "---\nlicense: apache-2.0\ntags:\n- mine\n---\n", "\n\n## Licences\n\nof mine\n"
    head = f"{front}# Sea\n\n## Results\n\n"
    card.write_text(f"{head}{section(result)}{tail}", encoding="utf-8")
    assert "| 8 | **41.50** |" in section(result)
    assert "Before" not in section(result)

    evaluated(workspace, "e1", "minilm", "base", 0.5, "2026-01-01")
    evaluated(workspace, "e2", "t", "new", 0.61, "2026-01-02")
    evaluated(workspace, "e3", "t", "new", 0.62, "2026-01-03")  # the same once more
    evaluated(workspace, "e4", "t", "earlier attempt", 0.9, "2026-01-04")
    evaluated(workspace, "e5", "another", "new", 0.9, "2026-01-05")
    evaluated(workspace, "e6", "t", "new", 0.7, "2026-01-06", name="lake")
    evaluated(workspace, "e7", "minilm", "base", 0.3, "2026-01-07", name="lake", hash="other content")
    for _ in range(2):
        refresh_card(workspace, "t")
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
            "| lake/test | published | – | – | 70.00 | – | – |",
            "| sea/test | published | – | 50.00 | 62.00 | – | – |",
        ]
        assert "| 8 | **41.50** |" in text
    card.write_text("my own card\n", encoding="utf-8")
    refresh_card(workspace, "t")
    assert card.read_text(encoding="utf-8") == "my own card\n"


def test_scores_stand_with_their_intervals_and_what_they_are_to_be_read_with(workspace: Workspace) -> None:
    result = {
        "retriever": "/home/somebody/models/base", "base_hash": "base", "model_hash": "new", "best_step": None,
        "settings": {"benchmark": "", "split": ""}, "evaluations": [],
    }  # fmt: skip
    job, commit = workspace.job("t"), "0123456789abcdef0123456789abcdef01234567"
    write_json(job / "results" / "training.json", result)
    (job / "model").mkdir()
    card = job / "model" / "README.md"
    card.write_text("---\nlicense: mit\n---\n# Sea\n\n## Results\n\nnone\n\n## Licences\n", encoding="utf-8")
    hub = workspace.benchmark("sea")
    manifests.write(hub, manifests.Manifest(source={"commits": {"BeIR/sea": commit}}))
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
    refresh_card(workspace, "t")
    text = card.read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if " | published | " in line]
    assert [row[-1] for row in rows] == ["a subset of sea |", "leaked |", "in-domain |"]
    assert rows[0][4:6] == ["100.00 [100.00, 100.00]", "–"]
    assert rows[2][2:4] == ["4", "25.00"]
    low, high = rows[2][4].removeprefix("50.00 [").removesuffix("]").split(", ")
    assert 0.0 <= float(low) < 50.0 < float(high) <= 100.0
    assert rows[2][5].startswith("+25.00 [+")
    assert "Leaked: 3 of the 4 judged queries" in text
    assert "/home/somebody" not in text
    sea = next(r for r in ModelCard(text).data.eval_results if r.dataset_type == "BeIR/sea")
    assert (sea.dataset_revision, sea.dataset_split, sea.metric_value) == (commit, "test", 50.0)
    assert sea.metric_args == {"queries": 4, "confidence_interval_95": [float(low), float(high)]}
    assert sea.dataset_name == "sea/test (published protocol, in-domain)"
    names = [r.dataset_name for r in ModelCard(text).data.eval_results]
    assert not any("leak" in name for name in names)  # no leaked score goes to the hub's tables
    assert metadata_faults(text) == []


def test_every_preset_has_a_licence_that_the_hub_knows() -> None:
    assert {p.licence_id for p in PRESETS.values()} <= {"apache-2.0", "mit", "cc-by-nc-4.0", "unknown"}


def test_the_card_names_measures_as_the_metrics_do() -> None:
    from cdp.metrics import MEASURES as THEIRS

    assert {name: THEIRS[name].title for name in MEASURES} == MEASURES


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
    measuring = write_job(workspace, "m", query_set=query_set, scorer="bi-encoder", encoder=model)
    assert work("cdp.workers.metrics", measuring) == 0
    folder = write_job(
        workspace, "t", query_set=query_set, retriever=model, epochs=2, batch_size=8, learning_rate=1e-3, per_doc=2,
        weighting="cw", lora_rank=2, gpus=0,
    )  # fmt: skip
    assert work("cdp.workers.training", folder) == 0

    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    bleu = sum(self_bleu(queries[:2]) for queries in asked.values()) / len(asked)
    ratio = next(v for v in measured(workspace, query_set, MEASURES, 2) if v["name"] == "paraphrase_ratio_bi_encoder")[
        "value"
    ]
    result = read_json(folder / "results" / "training.json")
    manifest = read_json(workspace.query_set(query_set) / "manifest.json")
    for stated in (
        f"| Self-BLEU | {bleu:.4f} (12 documents, M = 2) |",
        f"| Paraphrase ratio, bi-encoder | {ratio:.4f} (12 documents, M = 2) |",
        "| pairs | 24 |",
        "| queries per document | the first 2 |",
        "| content words per query | mean 1.50 (95% interval",
        f"| hash of the corpus | `{manifest['corpus_hash']}` |",
        f"| hash of the pairs | `{result['pairs_hash']}` |",
        "Weighting: **cw**.",
        "| LoRA | rank 2; the adapter was merged into the weights",
        "- **Documents**: CC BY 4.0.",
        "| written by | unknown: who wrote them was not recorded |",
        "| Q/Doc | 2.00 on average |",
        "| loss | WeightedInfoNCELoss, scale 20 |",
        "| seed | 0 |",
        "## Usage",
        f"| model hash | `{result['model_hash']}` (from `{result['base_hash']}`) |",
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
    assert {"dataset_size:24", "loss:WeightedInfoNCELoss", "sentence-transformers"} <= set(metadata.tags)
    assert metadata_faults(card) == []
    for table in body.split("\n\n"):
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len({row.replace("\\|", "").count("|") for row in rows}) <= 1, table  # every row as wide as its header
    plain = SentenceTransformer(str(folder / "model"), device="cpu")
    assert plain.encode_query(["what is the glacier"]).shape == (1, 32)
