"""Choosing a prompt: real candidates on the demo and on a real local endpoint, stopped, resumed, overridden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdp import jobs
from cdp.base.config import PromptTuningConfig
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.workspace import Workspace, read_jsonl, write_json
from cdp.metrics import self_bleu
from cdp.services import corpora, demo, tuning
from cdp.synthesis import candidates
from cdp.synthesis.candidates import candidates_of
from cdp.synthesis.methods import METHODS
from tests.metrics.models import tiny_cross_encoder
from tests.support import judged_queries, work
from tests.synthesis.server import KEY, MODEL, chat_server

pytestmark = pytest.mark.slow

OWN = "Ask {M} things about this.\n<document>\n{document}\n</document>\nWrite exactly {M} queries.\n1."


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    demo.load(workspace)
    return workspace


def corpus_id(workspace: Workspace) -> str:
    return corpora.list_corpora(workspace)[0].id


def config_of(workspace: Workspace, **values: Any) -> PromptTuningConfig:
    return PromptTuningConfig.from_dict({"corpus": corpus_id(workspace), **values})


def test_the_demos_prompts_are_told_apart(filled: Workspace, jobs_here: None) -> None:
    human = judged_queries(filled, demo.FOLDER, corpus_id(filled), "human", "test").id
    config = config_of(
        filled, methods="paraphrase,diverse", generator="recorded", documents=8, per_doc=6, human=human,
        encoder="static-minilm", scorer="bi-encoder",
    )  # fmt: skip
    found = tuning.result(filled, tuning.start(filled, config))
    assert [c["name"] for c in found["candidates"]] == ["diverse", "paraphrase"]
    assert found["choice"] == "diverse"
    diverse, paraphrase = found["candidates"]
    assert (diverse["distance"], diverse["inside"]) == (0.0, 1.0)
    assert paraphrase["distance"] > 0.1
    measured = {v["name"]: v for v in diverse["measures"]}
    assert set(measured) == {"paraphrase_ratio_bi_encoder", "self_bleu", "len_sim", "dist_sim", "cw"}
    lines = {
        candidate["name"]: {r["document_id"]: r["queries"] for r in read_jsonl(path)}
        for candidate in found["candidates"]
        for path in [filled.query_set(candidate["query_set"]) / "queries.jsonl"]
    }
    assert len(lines["diverse"]) == 8
    assert lines["diverse"].keys() == lines["paraphrase"].keys(), "all candidates write for the same documents"
    assert measured["self_bleu"]["value"] == pytest.approx(sum(map(self_bleu, lines["diverse"].values())) / 8)
    assert diverse["corpus_cost"] is None
    settings = candidates.synthesis_of(found)
    assert (settings.method, settings.limit, settings.draw) == ("diverse", None, None)


def test_a_prompt_of_ones_own_is_sent_and_nothing_is_asked_twice(
    filled: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs_here: None
) -> None:
    monkeypatch.setenv("CDP_API_KEY", KEY)
    write_json(filled.root / "prices.json", {"as_of": "2026-01-01", "models": {MODEL: {"input": 1.0, "output": 2.0}}})
    with chat_server() as server:
        monkeypatch.setenv("CDP_BASE_URL", server.url)
        config = config_of(
            filled, methods="diverse", generator="openai", base_url=server.url, model=MODEL, documents=4, per_doc=3,
            scorer=str(tiny_cross_encoder(tmp_path / "ce")),
        )  # fmt: skip
        job = tuning.start(filled, config, prompts={"mine": OWN})
        asked = len(server.bodies)
        assert asked == 8
        assert any("Ask 3 things about this." in json.dumps(body) for body in server.bodies)
        found = tuning.result(filled, job)
        mine = next(c for c in found["candidates"] if c["name"] == "mine")
        assert (mine["method"], mine["prompt"]) == ("own", OWN)
        assert mine["corpus_cost"] > 0
        settings = candidates.synthesis_of({**found, "choice": "mine"})
        assert (settings.method, settings.prompt, settings.per_doc) == ("own", OWN, 3)
        (filled.job(job) / "results" / "prompts.json").unlink()
        with pytest.raises(InputError, match="has not found anything yet"):
            tuning.result(filled, job)
        assert work(jobs.load_spec(filled, job).module, filled.job(job)) == 0
        assert {**tuning.result(filled, job), "created": ""} == {**found, "created": ""}
        tuning.start(filled, config, prompts={"mine": OWN})
        assert len(server.bodies) == asked, "what was paid for is not asked again"


def test_candidates_that_cannot_be_tried_are_refused_in_one_sentence(filled: Workspace, tmp_path: Path) -> None:
    def refused(kind: type[Exception], match: str, prompts: dict[str, str] | None = None, **values: Any) -> None:
        with pytest.raises(kind, match=match):
            candidates_of(config_of(filled, **values), prompts or {})

    reader = {"generator": "openai", "base_url": "http://127.0.0.1:9/v1"}
    refused(NotFoundError, "nosuch", methods="diverse,nosuch")
    refused(ConfigError, "at least two", methods="diverse")
    refused(ConfigError, "at least two", methods="diverse,diverse")
    refused(ConfigError, "called diverse", {"diverse": OWN}, methods="diverse,sap", **reader)
    refused(ConfigError, "reads no prompts", {"mine": OWN})
    refused(ConfigError, "mine: Your prompt lacks", {"mine": "Ask {M} things."}, **reader)
    refused(ConfigError, "called diverse", {"diverse": OWN}, **reader)
    for method in METHODS.values():
        if method.from_queries:
            refused(ConfigError, "no candidate", methods=f"diverse,{method.name}")
    (tmp_path / "mine.txt").write_text(OWN, encoding="utf-8")
    assert tuning.read_prompts([tmp_path / "mine.txt"]) == {"mine": OWN}
    with pytest.raises(InputError, match="No such file"):
        tuning.read_prompts([tmp_path / "other.txt"])
    with pytest.raises(InputError, match="Two prompt files"):
        tuning.read_prompts([tmp_path / "mine.txt", tmp_path / "mine.txt"])
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        tuning.read_prompts([tmp_path / "binary"])
