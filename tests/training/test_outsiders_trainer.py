"""The script of docs/LIBRARY.md: sentence-transformers' own trainer with our loss against ``cdp train``."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from cdp.base.workspace import Workspace, read_json
from cdp.query_sets.exports import export
from tests.support import REPOSITORY, work
from tests.training.conftest import write_job

PAGE = REPOSITORY / "docs" / "LIBRARY.md"


@pytest.mark.slow
def test_sentence_transformers_trainer_reaches_the_weights_of_cdp_train(
    workspace: Workspace, query_set: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the script of docs/LIBRARY.md as an outsider copies it, on the pairs that the product exports."""
    from sentence_transformers import SentenceTransformer

    from tests.support_models import tiny_retriever

    base = tiny_retriever(tmp_path / "tiny")
    folder = write_job(
        workspace, "t1", query_set=query_set, retriever=str(base), epochs=10, batch_size=1000, learning_rate=1e-3,
        weighting="cw",
    )  # fmt: skip
    assert work("cdp.workers.training", folder) == 0
    pairs = tmp_path / "pairs.parquet"
    export(workspace, query_set, "sentence-transformers", pairs)

    (script,) = re.findall(r'```python\n(""".*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    words = [str(base), str(pairs), str(tmp_path / "out"), "10", "1000", "1e-3"]
    monkeypatch.setattr(sys, "argv", ["train.py", *words])
    runpy.run_path(str(tmp_path / "train.py"))

    models = [SentenceTransformer(str(path), device="cpu") for path in (base, folder / "model", tmp_path / "out")]
    before, ours, theirs = ({n: p.detach().numpy() for n, p in model.named_parameters()} for model in models)
    # A key's bias moves no attention, so its gradient is rounding alone, and AdamW makes steps of that.
    names = [name for name in ours if "key.bias" not in name and np.abs(ours[name] - before[name]).max() > 0]
    assert len(names) > 20
    moved = max(float(np.abs(ours[name] - before[name]).max()) for name in names)
    apart = max(float(np.abs(ours[name] - theirs[name]).max()) for name in names)
    assert apart < 0.01 * moved, (apart, moved)
    texts = ["what is a glacier", "all about the harbour"]
    assert np.abs(models[1].encode(texts) - models[2].encode(texts)).max() < 1e-4
    assert np.abs(models[1].encode(texts) - models[0].encode(texts)).max() > 1e-2
    assert read_json(folder / "results" / "training.json")["steps"] == 10
