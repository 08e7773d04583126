"""A retriever in ONNX embeds as the model does, runs without it, and is evaluated like any other."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.retrievers import load, model_hash, resolve
from cdp.retrievers.leakage import chain
from cdp.training.card import FOLDER
from tests.cli.support import refusal
from tests.support import work
from tests.support_models import tiny_retriever, tiny_static
from tests.training.conftest import write_benchmark

pytestmark = pytest.mark.slow
TEXTS = ["why is the glacier blue", "", "a", "all about the volcano and its onaclov " * 40]


def exported(workspace: Workspace, source: Path, out: Path, **config: Any) -> dict[str, Any]:
    """Export it in this process; what the job says of it."""
    job = workspace.job(f"export-{out.name}")
    values = {"retriever": str(source), "out": str(out), **config}
    write_json(job / "spec.json", {"id": job.name, "kind": "export", "name": out.name, "config": values})
    assert work("cdp.workers.export", job) == 0
    result: dict[str, Any] = read_json(job / "results" / "export.json")
    return result


@pytest.mark.soak
def test_a_static_model_in_onnx_is_the_same_retriever(workspace: Workspace, tmp_path: Path) -> None:
    source, out = tiny_static(tmp_path / "tiny"), tmp_path / "out"
    write_benchmark(workspace, "sea", test=range(6))
    level = logging.getLogger().level
    result = exported(workspace, source, out, benchmark="sea", split="test")
    assert logging.getLogger().level == level, "what the exporter writes is quiet, whatever comes after it is not"
    assert result["largest_difference"] < 1e-5
    assert result["cosine_least"] > 0.999999
    assert result["speed_ratio"] > 0
    assert result["ndcg@10_before"] == result["ndcg@10_after"] > 0
    resolved = resolve(str(out), workspace)
    assert (resolved.exported, resolved.local, resolved.max_length) == ("onnx", True, None)
    before, after = load(resolve(str(source), workspace), "cpu"), load(resolved, "cpu")
    assert np.abs(before.encode_query(TEXTS) - after.encode_query(TEXTS)).max() < 1e-5
    assert not after.encode_query([""]).any()
    assert model_hash(after) != model_hash(before)
    readme = (out / "README.md").read_text(encoding="utf-8")
    assert "NDCG@10 on sea/test" in readme
    assert str(tmp_path) not in readme
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md", "model.onnx", "onnx_config.json", "parity.json", "tokenizer.json",
    ]  # fmt: skip


@pytest.mark.soak
def test_a_transformer_in_int8_runs_from_the_snippet_of_its_readme(workspace: Workspace, tmp_path: Path) -> None:
    source, out = tiny_retriever(tmp_path / "tiny"), tmp_path / "out"
    settings = read_json(source / "config_sentence_transformers.json")
    prompts = {"query": "search: ", "document": ""}
    write_json(source / "config_sentence_transformers.json", {**settings, "prompts": prompts})
    result = exported(workspace, source, out, format="onnx-int8")
    assert result["cosine_mean"] > 0.98
    assert result["largest_difference"] > 0  # it is no fp32 graph
    ours = load(resolve(str(out), workspace), "cpu")
    assert ours.max_seq_length == 128
    assert ours.prompts == prompts
    readme = (out / "README.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(snippet.splitlines()) <= 12
    names: dict[str, Any] = {}
    exec(snippet.replace(FOLDER, str(out)), names)
    theirs = names["vectors"]
    vector = ours.encode_query(["your query"])
    assert np.abs(theirs - vector / np.linalg.norm(vector)).max() < 1e-5


def test_an_exported_model_is_not_trained_and_keeps_its_history(workspace: Workspace, tmp_path: Path) -> None:
    from cdp.base.config import TrainingConfig
    from cdp.retrievers.exported import OnnxConfig
    from cdp.training.settings import complete

    out = tmp_path / "out"
    out.mkdir()
    OnnxConfig("onnx", 16, None, "cosine", {"query": "", "document": ""}, "t1", "hash").write(out)
    with pytest.raises(ConfigError, match="can be used and not trained"):
        complete(TrainingConfig(query_set="q", retriever=str(out)), resolve(str(out), workspace))
    spec = {"id": "t1", "kind": "training", "config": {"retriever": "static-minilm"}}
    write_json(workspace.job("t1") / "spec.json", spec)
    assert [folder.name for folder, _ in chain(workspace, str(out))] == ["t1"]  # so that a leak stays told
    assert "an exported model already" in refusal("models", "export", str(out), str(tmp_path / "again"))
    assert "already. Name a new folder" in refusal("models", "export", "static-minilm", str(out))
