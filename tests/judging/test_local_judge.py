"""A local model judges through the generator that writes queries; a model that gives no grade ends the run early."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.records import Document
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.corpus import CorpusManifest
from cdp.evaluation import judging as prompts
from cdp.services import judging
from cdp.synthesis.generators import make_generator
from cdp.workers.judging import JUDGE
from tests.judging.conftest import settings
from tests.support import work
from tests.synthesis.models import tiny_writer

pytestmark = pytest.mark.slow


def test_a_local_model_is_asked_and_its_nonsense_ends_the_run(
    workspace: Workspace, corpus: CorpusManifest, log: Path, tmp_path: Path
) -> None:
    folder = tiny_writer(tmp_path / "writer")
    config = settings(
        corpus, log, generator="transformers", model=str(folder), max_output_tokens=16, gpus=0, retrievers="bm25"
    )
    judge = make_generator(config.synthesis)
    judge.prepare()
    answer = judge.generate(prompts.prompt("where", "there"), Document("d", "there"), JUDGE, 1)
    assert answer.usage.output_tokens <= 16
    assert judge.generate(prompts.prompt("where", "there"), Document("d", "there"), JUDGE, 1).text == answer.text
    sentence = judging.plan(workspace, config).sentence
    assert "stay on this machine" in sentence
    job = workspace.job("judging-1")
    write_json(job / "spec.json", {"id": "judging-1", "kind": "judging", "config": config.to_dict()})
    assert work("cdp.workers.judging", job) == 1
    assert "answers held no grade" in read_json(job / "failure.json")["message"]
    assert not workspace.benchmark("animals-judged").exists()
