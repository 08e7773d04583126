"""The model card of a trained retriever holds what was really measured, and is sound Markdown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer

from cdp.base.text import public
from cdp.base.workspace import Workspace, read_json
from cdp.corpus import read_documents, store
from cdp.query_sets import import_queries
from cdp.retrievers import PRESETS
from tests.services.upload_hub import metadata_faults
from tests.support import work
from tests.support_models import tiny_retriever
from tests.training.conftest import TOPICS, write_job


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
        "weighting **cw**, on 24 pairs over 12 documents (asked, imported, written by unknown: who wrote them was not",
        "- **Documents**: CC BY 4.0.",
        *(f"\n- {note}\n" for note in result["notes"]),
    ):
        assert stated in card, stated
    assert json.loads(card.split("```json\n")[1].split("```")[0]) == public(result)
    assert str(tmp_path) not in card
    metadata = ModelCard(card).data  # as the hub reads it
    assert metadata.library_name == "sentence-transformers"
    assert metadata.license is None  # a folder's licence is not known
    assert metadata.pipeline_tag == "sentence-similarity"
    assert metadata.language == "en"
    assert {"dataset_size:24", "sentence-transformers"} <= set(metadata.tags)
    assert metadata_faults(card) == []
    plain = SentenceTransformer(str(folder / "model"), device="cpu")
    assert plain.encode_query(["what is the glacier"]).shape == (1, 32)
