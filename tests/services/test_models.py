"""Trained models: the list, their cards, and giving them to a hub, which is a server of the test's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from cdp.base.workspace import Workspace, read_json, write_json
from cdp.evaluation.card import FOLDER, NO_SCORES, licence_in
from cdp.retrievers import load, model_hash, resolve, spelling
from cdp.training.plan import INCOMPLETE
from tests.cli.support import answer, refusal, run
from tests.services.support import evaluation
from tests.services.upload_hub import TOKEN, Server, UploadHub, metadata_faults
from tests.support_models import tiny_multi_vector, tiny_sparse, tiny_static

pytestmark = pytest.mark.slow  # huggingface_hub and httpx take a second to load

Make = Callable[[Path], Path]

CARD = f"""---
license: apache-2.0
library_name: sentence-transformers
---

# Sea

A retriever.

```python
model = SentenceTransformer("{FOLDER}")
```

## Results

{NO_SCORES}

## Licences

- Model: Apache 2.0
"""
WEIGHTS = bytes(range(256)) * 64
STATIC = [{"idx": 0, "name": "0", "path": "0_StaticEmbedding", "type": "sentence_transformers.models.StaticEmbedding"}]


def trained(workspace: Workspace, job: str, **result: Any) -> Path:
    """A finished training with a model, as its worker leaves it."""
    folder = workspace.job(job)
    spec = {"id": job, "kind": "training", "name": "Sea", "created": "2026-01-01", "module": "none", "config": {}}
    write_json(folder / "spec.json", {**spec, "config": {"retriever": "static-minilm", "query_set": "q"}})
    write_json(folder / "status.json", {"phase": "ended", "outcome": "finished", "attempt": 1})
    value = {
        "retriever": "static-minilm", "query_set": "q", "model_hash": "new", "base_hash": "old", "notes": [],
        "best_step": None, "evaluations": [], "settings": {"benchmark": "", "split": ""}, **result,
    }  # fmt: skip
    write_json(folder / "results" / "training.json", value)
    (folder / "model" / "0_StaticEmbedding").mkdir(parents=True)
    # As an earlier version of CDP Studio saved it: under the names that sentence-transformers 6 gives its modules.
    newer = STATIC[0]["type"].replace("models", "sentence_transformer.modules")
    write_json(folder / "model" / "modules.json", [{**STATIC[0], "type": newer}])
    (folder / "model" / "0_StaticEmbedding" / "model.safetensors").write_bytes(WEIGHTS)
    (folder / "model" / ".half-written").write_bytes(b"x")
    (folder / "model" / "README.md").write_text(CARD, encoding="utf-8")
    return folder


def scored(
    workspace: Workspace, job: str, benchmark: str, scores: dict[str, float], day: int = 2, **counts: int
) -> None:
    """A finished evaluation of that training's model."""
    path = workspace.job(
        evaluation(workspace, job, benchmark, scores, kind="job", counts=counts, created=f"2026-01-0{day}")
    )
    spec, record = read_json(path / "spec.json"), read_json(path / "results" / "evaluation.json")
    write_json(path / "spec.json", {**spec, "config": {"retriever": job}})
    record["retriever"]["hash"] = "new"
    write_json(path / "results" / "evaluation.json", record)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[UploadHub]:
    hub = UploadHub()
    with Server(hub):
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "nobody"))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        yield hub


def test_a_pushed_model_is_private_whole_and_under_a_fresh_card(workspace: Workspace, hub: UploadHub) -> None:
    trained(workspace, "t1")
    scored(workspace, "t1", "scifact", {"a": 0.1, "b": 0.1}, day=1)
    scored(workspace, "t1", "scifact", {"a": 0.5, "b": 0.7}, trained_positives=4, judged_positives=4)
    scored(workspace, "t1", "lake", {"a": 0.7, "b": 0.7}, leaked_queries=1)
    done = answer("models", "push", "Sea", "me/sea", "--allow-leakage")
    repository = hub.repositories["me/sea"]
    assert (repository.private, done["private"], done["url"]) == (True, True, f"{hub.address}/me/sea")
    assert repository.files.keys() == {"modules.json", "README.md", "0_StaticEmbedding/model.safetensors"}
    assert repository.files["0_StaticEmbedding/model.safetensors"] == WEIGHTS
    assert json.loads(repository.files["modules.json"]) == STATIC
    card = repository.files["README.md"].decode()
    assert 'SentenceTransformer("me/sea")' in card
    assert "| lake/test | published | 2 | 70.00 | leaked |" in card
    assert "| scifact/test | published | 2 | 60.00 | in-domain |" in card
    assert metadata_faults(card) == []
    assert FOLDER in (workspace.job("t1") / "model" / "README.md").read_text(encoding="utf-8")
    assert repository.messages == [f"Sea, trained with CDP Studio {_version()} (new)"]
    answer("models", "push", "t1", "me/sea", "--allow-leakage")  # once more, into the repository that is there
    assert len(repository.messages) == 2


def _version() -> str:
    from cdp import __version__

    return __version__


def test_what_is_leaked_or_incomplete_is_refused_until_it_is_meant_and_then_says_so(
    workspace: Workspace, hub: UploadHub
) -> None:
    trained(workspace, "t2", notes=["**Stopped at step 3 of 9**: its scores are not those of a whole one.", INCOMPLETE])
    scored(workspace, "t2", "scifact", {"a": 0.5, "b": 0.7}, leaked_queries=1)
    assert "--allow-leakage" in refusal("models", "push", "t2", "me/sea")
    assert "--allow-incomplete" in refusal("models", "push", "t2", "me/sea", "--allow-leakage")
    assert hub.repositories == {}
    done = run("models", "push", "t2", "me/sea", "--allow-leakage", "--allow-incomplete", "--public", "--json")
    assert done.stderr.count("warning: ") == 3
    assert hub.repositories["me/sea"].private is False
    card = hub.repositories["me/sea"].files["README.md"].decode()
    top = card.split("# Sea\n")[1].split("A retriever.")[0]
    assert top.count("\n> **") == 3
    assert "> **Leaked** on scifact/test: Leaked: 1 of the 2 judged queries" in top
    faults = [fault["kind"] for fault in answer("models", "show", "t2")["faults"]]
    assert faults == ["leaked", "incomplete", "incomplete"]


def test_what_the_hub_refuses_is_one_sentence(
    workspace: Workspace, hub: UploadHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(workspace, "t3")
    assert "owner/name" in refusal("models", "push", "t3", "sea")
    assert "no name of a repository" in refusal("models", "push", "t3", "me/se a")
    assert "no training" in refusal("models", "push", "static-minilm", "me/sea").lower()
    answer("models", "push", "t3", "me/open", "--public")
    assert "open to everyone" in refusal("models", "push", "t3", "me/open")
    hub.broken["/api/models/me/open/commit"] = 500
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)  # its waits between retries
    failed = run("models", "push", "t3", "me/open", "--public", code=2)
    assert "The hub did not take me/open: out of order" in failed.stderr.splitlines()[-1]  # below a progress bar
    monkeypatch.setenv("HF_TOKEN", "hf_reader")
    assert "a token that may write there" in refusal("models", "push", "t3", "me/sea")
    monkeypatch.delenv("HF_TOKEN")
    assert "hf auth login" in refusal("models", "push", "t3", "me/sea")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert "cannot be reached" in refusal("models", "push", "t3", "me/sea")


def test_a_model_is_listed_with_the_licence_on_its_card(workspace: Workspace) -> None:
    card = trained(workspace, "t4") / "model" / "README.md"
    card.write_text(
        card.read_text(encoding="utf-8").replace("license: apache-2.0", "license: cc-by-4.0"), encoding="utf-8"
    )
    (listed,) = answer("models", "list")
    assert (listed["id"], listed["licence"], listed["faults"]) == ("t4", "cc-by-4.0", [])
    assert "model.safetensors" in run("models", "show", "t4").stdout


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("license: mit", "mit"),
        ("license: [mit, gpl-3.0]", "mit, gpl-3.0"),
        ("tags: 3\nlicense: mit", "mit"),
        ("1: x\nself: y\nlicense: mit", "mit"),
        ("date: 2024-02-30\nlicense: mit", "mit"),
        ("license:", ""),
        ("- license", ""),
        ("license: " + 3000 * "[", ""),
        ("license: [", ""),
    ],
)
def test_a_card_that_was_edited_costs_no_more_than_its_licence(metadata: str, licence: str, tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_text(f"---\n{metadata}\n---\n\n# A model\n\n---\n", encoding="utf-8")
    assert licence_in(card) == licence


@pytest.mark.parametrize("text", ["", "# A model", "---\nlicense: mit"])
def test_a_card_without_metadata_has_no_licence(text: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    assert licence_in(tmp_path / "README.md") == ""


@pytest.mark.parametrize("make", [tiny_multi_vector, partial(tiny_multi_vector, dim=8), tiny_sparse])
def test_an_exported_model_of_another_kind_is_the_same(make: Make, workspace: Workspace, tmp_path: Path) -> None:
    model_folder, out = trained(workspace, "t6") / "model", tmp_path / "out"
    ours = load(resolve(str(make(tmp_path / "tiny")), workspace), "cpu")
    shutil.rmtree(model_folder)
    spelling.save(ours, model_folder)
    answer("models", "export", "t6", str(out))

    theirs = load(resolve(str(out), workspace), "cpu")
    assert model_hash(theirs) == model_hash(ours)
    expected, found = (model.encode_document(["why is the glacier blue"])[0] for model in (ours, theirs))
    assert torch.equal(torch.as_tensor(found).to_dense(), torch.as_tensor(expected).to_dense())


def test_an_exported_model_is_a_folder_with_its_scores(workspace: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "out"
    model_folder = trained(workspace, "t5") / "model"
    shutil.rmtree(model_folder)
    source = tiny_static(tmp_path / "tiny").rename(model_folder)
    (source / "README.md").write_text(CARD, encoding="utf-8")
    scored(workspace, "t5", "scifact", {"a": 0.5, "b": 0.7})
    assert answer("models", "export", "Sea", str(out)) == {"id": "Sea", "folder": str(out)}
    card = (out / "README.md").read_text(encoding="utf-8")
    assert 'SentenceTransformer("path/to/this/folder")' in card
    assert str(out) not in card
    assert "| scifact/test | published | 2 | 60.00 |" in card
    theirs = load(resolve(str(out), workspace), "cpu").encode(["why is the glacier blue"])
    assert (theirs == load(resolve("t5", workspace), "cpu").encode(["why is the glacier blue"])).all()
    assert "Name a new folder" in refusal("models", "export", "Sea", str(out))
