"""The tuning job: real candidates on the demo and on a real local endpoint, stopped, resumed, overridden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdp.base.config import PromptTuningConfig
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.worker import Job, Stopped
from cdp.base.workspace import Workspace, read_json, read_jsonl, write_json
from cdp.metrics import self_bleu
from cdp.services import corpora, demo, tuning
from cdp.studies.prompts import candidates_of, sample_documents
from cdp.synthesis.methods import METHODS
from cdp.workers.prompt_tuning import main
from tests.metrics.models import tiny_cross_encoder
from tests.pages.support import ended_job
from tests.support import judged_queries
from tests.synthesis.server import KEY, MODEL, chat_server

OWN = "Ask {M} things about this.\n<document>\n{document}\n</document>\nWrite exactly {M} queries.\n1."


def job_of(workspace: Workspace, name: str, prompts: dict[str, str] | None = None, **config: Any) -> Path:
    folder = ended_job(workspace, name, "prompts", config)
    write_json(folder / "spec.json", {**read_json(folder / "spec.json"), "inputs": {"prompts": prompts or {}}})
    return folder


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    demo.load(workspace)
    return workspace


def corpus_id(workspace: Workspace) -> str:
    return corpora.list_corpora(workspace)[0].id


@pytest.mark.slow
def test_the_demos_prompts_are_told_apart(filled: Workspace, tmp_path: Path) -> None:
    human = judged_queries(filled, demo.FOLDER, corpus_id(filled), "human", "test").id
    folder = job_of(
        filled, "p1", corpus=corpus_id(filled), methods="diverse,paraphrase,sap", generator="recorded", documents=20,
        per_doc=8, human=human, encoder="static-minilm", scorer="bi-encoder",
    )  # fmt: skip
    main(Job(folder))
    found = tuning.finished(filled, "p1")
    assert [c["name"] for c in found.candidates] == ["diverse", "paraphrase", "sap"]
    assert found.choice == "diverse"
    assert (found.n_documents, found.n_corpus) == (20, 96)
    diverse, paraphrase, sap = found.candidates
    assert "recording" in sap["error"]
    assert (diverse["distance"], diverse["inside"]) == (0.0, 1.0)
    assert paraphrase["distance"] > 0.1
    measured = {v["name"]: v for v in diverse["measures"]}
    assert set(measured) == {"paraphrase_ratio_bi_encoder", "self_bleu", "len_sim", "dist_sim", "cw"}
    lines = {r["document_id"]: r["queries"] for r in read_jsonl(folder / "checkpoints" / "diverse.jsonl")}
    assert len(lines) == 20
    assert measured["self_bleu"]["value"] == pytest.approx(sum(map(self_bleu, lines.values())) / 20)
    assert measured["self_bleu"]["sampled_from"] == 96
    assert {e["document_id"] for e in diverse["examples"]} == {e["document_id"] for e in paraphrase["examples"]}
    assert diverse["tokens"]["input"] > 200
    assert diverse["corpus_cost"] is None

    assert tuning.synthesis_of(found).method == "diverse"
    assert tuning.synthesis_of(found, "paraphrase").method == "paraphrase"
    with pytest.raises(NotFoundError, match="nothing"):
        tuning.synthesis_of(found, "nothing")


@pytest.mark.slow
def test_a_prompt_of_ones_own_is_sent_and_its_tokens_counted(
    filled: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDP_API_KEY", KEY)
    write_json(filled.root / "prices.json", {"as_of": "2026-01-01", "models": {MODEL: {"input": 1.0, "output": 2.0}}})
    with chat_server() as server:
        monkeypatch.setenv("CDP_BASE_URL", server.url)
        config = {
            "corpus": corpus_id(filled), "methods": "diverse", "generator": "openai", "base_url": server.url,
            "model": MODEL, "documents": 4, "per_doc": 3, "scorer": str(tiny_cross_encoder(tmp_path / "ce")),
        }  # fmt: skip
        folder = job_of(filled, "p1", {"mine": OWN}, **config)
        (folder / "stop.request").touch()
        with pytest.raises(Stopped):
            main(Job(folder))
        assert tuning.result(filled, "p1") is None
        with pytest.raises(InputError, match="has not found anything yet"):
            tuning.finished(filled, "p1")
        (folder / "stop.request").unlink()
        main(Job(folder))
        asked = len(server.bodies)
        assert asked == 8
        found = tuning.finished(filled, "p1")
        mine = found.candidate("mine")
        assert mine["prompt"] == OWN
        assert mine["n_queries"] == 12
        assert mine["usage"]["requests"] == 4
        usage = mine["usage"]
        assert mine["paid"] == pytest.approx((usage["input_tokens"] + 2 * usage["output_tokens"]) / 1e6)
        tokens = mine["tokens"]
        assert mine["corpus_cost"] == pytest.approx(96 * (tokens["input"] + 2 * tokens["output"]) / 1e6, rel=0.01)
        assert any("Ask 3 things about this." in json.dumps(body) for body in server.bodies)
        again = read_json(folder / "results" / "prompts.json")
        main(Job(folder))
        assert len(server.bodies) == asked
        repeated = read_json(folder / "results" / "prompts.json")
        assert {**again, "created": ""} == {**repeated, "created": ""}
        settings = tuning.synthesis_of(found, "mine")
        assert (settings.method, settings.prompt, settings.per_doc) == ("own", OWN, 3)


def config_of(workspace: Workspace, **values: Any) -> PromptTuningConfig:
    return PromptTuningConfig.from_dict({"corpus": corpus_id(workspace), **values})


def test_the_sample_is_drawn_by_the_seed_and_no_larger_than_the_corpus(filled: Workspace) -> None:
    first, n = sample_documents(filled, config_of(filled, documents=10))
    again, _ = sample_documents(filled, config_of(filled, documents=10))
    other, _ = sample_documents(filled, config_of(filled, documents=10, seed=1))
    assert ([d.id for d in first], n) == ([d.id for d in again], 96)
    assert [d.id for d in first] != [d.id for d in other]
    everything, _ = sample_documents(filled, config_of(filled, documents=1000))
    assert len(everything) == 96


def test_candidates_that_cannot_be_tried_are_refused_in_one_sentence(filled: Workspace, tmp_path: Path) -> None:
    def refused(kind: type[Exception], match: str, prompts: dict[str, str] | None = None, **values: Any) -> None:
        with pytest.raises(kind, match=match):
            candidates_of(config_of(filled, **values), prompts or {})

    reader = {"generator": "openai", "base_url": "http://127.0.0.1:9/v1"}
    refused(NotFoundError, "nosuch", methods="diverse,nosuch")
    refused(ConfigError, "at least two", methods="diverse")
    refused(ConfigError, "called diverse", methods="diverse,diverse")
    refused(ConfigError, "reads no prompts", {"mine": OWN})
    refused(ConfigError, "mine: Your prompt lacks", {"mine": "Ask {M} things."}, **reader)
    refused(ConfigError, "called diverse", {"diverse": OWN}, **reader)
    for method in METHODS.values():
        if method.from_queries:
            refused(ConfigError, "no candidate", methods=f"diverse,{method.name}")
    (tmp_path / "mine.txt").write_text(OWN, encoding="utf-8")
    assert tuning.read_prompts([tmp_path / "mine.txt"]) == {"mine": OWN}
    with pytest.raises(InputError, match="no file"):
        tuning.read_prompts([tmp_path / "other.txt"])
    with pytest.raises(InputError, match="Two prompt files"):
        tuning.read_prompts([tmp_path / "mine.txt", tmp_path / "mine.txt"])
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        tuning.read_prompts([tmp_path / "binary"])
