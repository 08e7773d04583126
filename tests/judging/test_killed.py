"""A judging job that is killed and resumed grades every pair once, and no stored answer is paid for again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import judged
from cdp.corpus import read_documents, store
from cdp.llm.cache import AnswerCache
from tests.jobs.support import run_worker
from tests.judging.conftest import ANIMALS, passage, settings
from tests.support import work
from tests.synthesis.server import ChatServer

pytestmark = pytest.mark.slow

CONCURRENCY = 4


@pytest.mark.parametrize(
    ("per_animal", "depth", "kills"), [(2, 5, (20,)), pytest.param(9, 50, (100, 250, 420, 640, 800),
                                                                      marks=pytest.mark.soak)]
)  # fmt: skip
def test_killed_and_resumed_it_judges_each_pair_once(
    workspace: Workspace, tmp_path: Path, judge: ChatServer, per_animal: int, depth: int, kills: tuple[int, ...]
) -> None:
    path, log = tmp_path / "animals.jsonl", workspace.root / "log.txt"
    rows = [{"_id": f"{animal}-{n}", "text": passage(animal, n)} for animal in ANIMALS for n in range(per_animal)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    log.parent.mkdir(parents=True)
    log.write_text("\n".join(f"where does the {animal} sleep" for animal in ANIMALS), encoding="utf-8")
    with read_documents(path) as result:
        corpus = store(result, "animals", workspace)
    judge.latency = 0.01
    judge.rates = {"500": 0.05, "timeout": 0.005} if len(kills) > 1 else {}
    judge.hang = 1.5
    folder = workspace.job("judging-1")
    config = settings(corpus, log, base_url=judge.url, concurrency=CONCURRENCY, depth=depth, timeout=1.0,
                      retrievers="static-minilm" if len(kills) > 1 else "bm25")  # fmt: skip
    if len(kills) > 1:
        config = config.replace(depth=100)
    write_json(folder / "spec.json", {"id": "judging-1", "kind": "judging", "config": config.to_dict()})
    lost = 0
    for target in kills:
        run_worker("cdp.workers.judging", folder, lambda: len(judge.bodies), target)
        with AnswerCache(workspace) as cache:  # sent, and not answered when it was killed
            lost += cache._read("SELECT count(*) FROM asked")[0][0]
    assert work("cdp.workers.judging", folder) == 0
    result = read_json(folder / "results" / "judging.json")
    pairs = sum(map(len, judged.read_pool(workspace.benchmark("animals-judged")).values()))
    assert result["pairs"] == result["judged"] == pairs
    assert len(kills) == 1 or pairs >= 1000
    twice = sum(judge.answered.values()) - pairs
    assert len(judge.answered) == pairs
    assert 0 <= twice <= lost <= CONCURRENCY * len(kills), "only what was on its way at a kill is asked again"
    assert result["spent"]["requests"] == pairs
    # A new job with the same settings pays for nothing.
    before = len(judge.bodies)
    again = workspace.job("judging-2")
    spec = {"id": "judging-2", "kind": "judging", "config": {**config.to_dict(), "name": "again"}}
    write_json(again / "spec.json", spec)
    assert work("cdp.workers.judging", again) == 0
    assert len(judge.bodies) == before
