"""What a run will cost, what it did cost, and a budget that stops it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, WorkspaceError
from cdp.base.workspace import Workspace
from cdp.llm import prices
from cdp.llm.answers import Usage
from cdp.llm.prices import PRICES, Price, load_price
from cdp.synthesis import pricing as estimating
from cdp.synthesis.pricing import estimate
from cdp.synthesis.run import SynthesisRun
from tests.support import write_prices
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, MODEL, ChatServer


@pytest.fixture
def priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A price table of the test's own, in use."""
    path = tmp_path / "prices.json"
    table = {"as_of": "2026-01-01", "models": {MODEL: {"input": 1.0, "output": 10.0, "batch_discount": 0.5}}}
    path.write_text(json.dumps(table))
    monkeypatch.setattr(prices, "PRICES", path)
    return path


def test_every_shipped_price_is_whole_and_dated() -> None:
    table = json.loads(PRICES.read_text(encoding="utf-8"))
    assert len(table["as_of"]) == 10
    for model in table["models"]:
        price = load_price(model)
        assert price is not None
        embeds = "embedding" in model  # nothing is written, and input alone costs
        assert price.output == 0 < price.input if embeds else 0 < price.input < price.output
        assert 0 <= price.batch_discount < 1


def test_a_dated_release_has_its_models_price_and_a_relative_has_not() -> None:
    assert load_price("gpt-4o-mini-2024-07-18") == load_price("gpt-4o-mini")
    assert load_price("gpt-4o-mini") != load_price("gpt-4o")
    assert load_price("gpt-4o-audio") is None
    assert load_price("someone/else") is None


def test_cost_is_tokens_times_price() -> None:
    assert Price("m", 2.0, 8.0).cost(Usage(500_000, 250_000, 1)) == pytest.approx(3.0)


def test_the_workspaces_prices_come_before_the_shipped_ones(workspace: Workspace) -> None:
    write_prices(workspace, [Price("gpt-4o-mini", 0.2, 0.8), Price("my-own", 1.5, 6.0)], "2026-01-02")
    assert load_price("my-own", workspace) == Price("my-own", 1.5, 6.0, as_of="2026-01-02")
    assert load_price("gpt-4o-mini", workspace) == Price("gpt-4o-mini", 0.2, 0.8, as_of="2026-01-02")
    assert load_price("gpt-4o", workspace) == load_price("gpt-4o")


def test_an_estimate_agrees_with_what_the_run_then_uses(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace, priced: Path
) -> None:
    corpus = make_corpus(10)
    values = {"corpus": corpus.id, "generator": "openai", "model": MODEL, "base_url": server.url, "per_doc": 4}
    config = SynthesisConfig.from_dict(values)
    expected = estimate(workspace, config)
    result = SynthesisRun(make_job(**values), api_key=KEY).execute()
    assert (expected.n_documents, expected.requests, expected.sampled) == (10, 10, 10)
    assert expected.input_margin == 0
    assert expected.input_tokens == pytest.approx(result["usage"]["input_tokens"], rel=0.05)
    assert expected.cost == pytest.approx(expected.input_tokens / 1e6 + expected.output_tokens / 1e5)
    assert expected.batch_cost == pytest.approx(expected.cost / 2)
    used = result["usage"]
    assert result["cost"] == pytest.approx(used["input_tokens"] / 1e6 + used["output_tokens"] / 1e5)
    assert result["price_as_of"] == "2026-01-01"


def test_a_sample_stands_for_the_corpus_with_a_margin(
    workspace: Workspace, make_corpus: CorpusMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = make_corpus(rows=[(f"d{i}", "", "word " * (10 + i)) for i in range(150)])
    config = SynthesisConfig.from_dict({"corpus": corpus.id, "generator": "openai", "base_url": "http://x/v1"})
    monkeypatch.setattr(estimating, "SAMPLE", 150)
    whole = estimating.sampled_estimate(workspace, config)
    monkeypatch.setattr(estimating, "SAMPLE", 30)
    part = estimating.sampled_estimate(workspace, config)
    assert part.input_margin > 0
    assert abs(part.input_tokens - whole.input_tokens) <= 1.5 * part.input_margin
    assert part.price == load_price("gpt-4o-mini")


def test_one_query_per_call_is_priced_as_that(workspace: Workspace, make_corpus: CorpusMaker) -> None:
    corpus = make_corpus(5)
    base = {"corpus": corpus.id, "generator": "openai", "base_url": "http://x/v1", "per_doc": 6}
    assert estimate(workspace, SynthesisConfig.from_dict({**base, "method": "sap"})).requests == 30
    assert estimate(workspace, SynthesisConfig.from_dict(base)).requests == 5


def test_what_needs_no_model_costs_nothing_and_what_has_no_price_says_so(
    workspace: Workspace, make_corpus: CorpusMaker
) -> None:
    corpus = make_corpus(5)
    free = estimate(workspace, SynthesisConfig.from_dict({"corpus": corpus.id}))
    assert (free.cost, free.requests) == (0.0, 0)
    values = {"corpus": corpus.id, "generator": "openai", "base_url": "http://x/v1", "model": "unpriced"}
    unknown = estimate(workspace, SynthesisConfig.from_dict(values))
    assert (unknown.price, unknown.cost, unknown.batch_cost) == (None, None, None)
    assert unknown.input_tokens > 0


@pytest.mark.slow
def test_a_budget_stops_the_run_and_a_larger_one_goes_on_without_paying_twice(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, priced: Path
) -> None:
    corpus = make_corpus(20)
    values = {
        "corpus": corpus.id, "generator": "openai", "model": MODEL, "base_url": server.url, "per_doc": 3,
        "concurrency": 1,
    }  # fmt: skip
    small = make_job(**values, budget=0.0025)
    with pytest.raises(ConfigError, match=r"budget of 0\.0025 US dollars is used up"):
        SynthesisRun(small, api_key=KEY).execute()
    asked = len(server.bodies)
    assert 3 <= asked < 16
    stopped = query_sets.list_query_sets(small.workspace)[0]
    assert not stopped.complete
    with pytest.raises(ConfigError, match="used up"):
        SynthesisRun(small, api_key=KEY).execute()
    assert len(server.bodies) == asked
    result = SynthesisRun(make_job(**values, budget=5), api_key=KEY).execute()
    assert result["complete"]
    assert len(server.bodies) == 20
    assert result["usage"]["requests"] == 20 - asked


def test_a_budget_needs_a_price(server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    values = {"corpus": make_corpus(2).id, "generator": "openai", "model": MODEL, "base_url": server.url}
    with pytest.raises(ConfigError, match="no price for 'test-model'"):
        SynthesisRun(make_job(**values, budget=1.0), api_key=KEY)


@pytest.mark.parametrize(
    "entry",
    ["null", "7", "[]", '"x"', "{}", '{"input": 1}', '{"input": "much", "output": 1}', '{"input": -1, "output": 1}',
     '{"input": NaN, "output": 1}', '{"input": 1, "output": Infinity}', f'{{"input": 1{"0" * 400}, "output": 1}}',
     '{"input": [1], "output": 1}', '{"input": true, "output": 1}',
     '{"input": 1, "output": 1, "batch_discount": 7}'],
)  # fmt: skip
def test_a_price_that_is_none_is_told(workspace: Workspace, entry: str) -> None:
    path = workspace.root / "prices.json"
    path.parent.mkdir(parents=True)
    path.write_text(f'{{"as_of": "2026-01-01", "models": {{"m": {entry}}}}}')
    with pytest.raises(WorkspaceError, match=r"price table prices\.json is damaged") as caught:
        load_price("m", workspace)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("table", ["[]", "7", '{"models": []}', '{"models": ["m"]}', '{"as_of": "x"}', "null"])
def test_a_price_table_that_is_none_is_told(workspace: Workspace, table: str) -> None:
    workspace.root.mkdir(parents=True)
    (workspace.root / "prices.json").write_text(table)
    with pytest.raises(WorkspaceError, match="is damaged"):
        load_price("m", workspace)
