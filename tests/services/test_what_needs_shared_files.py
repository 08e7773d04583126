"""What shares files with other jobs is not given to nodes that do not see them: said before anything is begun."""

from __future__ import annotations

import pytest

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.cli import main
from cdp.jobs import place, ray_cluster
from cdp.jobs.place import Place
from cdp.services import queries, studies
from cdp.studies import StudyConfig


def test_what_shares_files_with_other_jobs(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["demo"]) == 0
    monkeypatch.setattr(ray_cluster, "check", lambda address: "2.60.0")
    place.set_for_workspace(workspace, Place("http://head:8265", store="s3://bucket"))
    (corpus,) = (folder.name for folder in workspace.corpora.glob("[!.]*"))
    asked = {"corpus": corpus, "generator": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(ConfigError, match="shares the answers that were paid for"):
        queries.generate(workspace, SynthesisConfig.from_dict(asked))
    planned = {
        "query_sets": "demo paraphrase",
        "benchmarks": "demo",
        "retrievers": "static-minilm",
    }
    with pytest.raises(ConfigError, match="shares the conditions that were trained"):
        studies.run(workspace, StudyConfig.from_dict(planned))
    assert list(workspace.jobs.glob("*")) == []
