"""InPars' filter: the mean token log-probability of each query, kept with it, and the best of a whole set by it."""

from __future__ import annotations

import math

import pytest

from cdp import query_sets
from cdp.__main__ import main
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.llm.answers import _mean_logprob
from cdp.llm.cache import AnswerCache
from cdp.services import queries
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators import make_generator
from cdp.synthesis.methods import METHODS, method_of
from cdp.synthesis.run import SynthesisRun
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, MODEL, ChatServer


def told(content: str) -> list[float]:
    """Log-probabilities that depend on the answer alone, so that a test can compute them again."""
    return [-(ord(character) % 7) / 3 for character in content]


def expected(query: str) -> float:
    return math.fsum(told(f"{query}")) / len(query)


def written(
    server: ChatServer, workspace: Workspace, make_corpus: CorpusMaker, make_job: JobMaker, **settings: object
) -> str:
    server.answer = lambda prompt, m: f"Which wheel turns in case {len(server.bodies)}?"
    job = make_job(
        corpus=make_corpus(4).id, method="inpars_gbq", generator="openai", model=MODEL, base_url=server.url, per_doc=2,
        concurrency=1, **settings,
    )  # fmt: skip
    SynthesisRun(job, api_key=KEY).execute()
    return query_sets.list_query_sets(workspace)[0].id


def test_the_best_of_a_set_are_kept_by_mean_log_probability(
    server: ChatServer, workspace: Workspace, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    server.logprobs = told
    name = written(server, workspace, make_corpus, make_job, logprobs=True)
    assert all(body["logprobs"] is True for body in server.bodies)
    lines = list(query_sets.iter_lines(workspace, name))
    of_query = {query: value for line in lines for query, value in zip(line["queries"], line["logprobs"], strict=True)}
    assert len(of_query) == 8
    assert of_query == {query: pytest.approx(expected(query)) for query in of_query}
    made, without = queries.best(workspace, name, 3)
    kept = {query for line in query_sets.iter_lines(workspace, made.id) for query in line["queries"]}
    assert kept == set(sorted(of_query, key=lambda query: -expected(query))[:3])
    assert without == 0
    source = query_sets.load(workspace, name)
    assert (made.method, made.generator, made.model, made.prompt_hash, made.kind) == (
        "inpars_gbq", "openai", MODEL, source.prompt_hash, "synthetic"
    )  # fmt: skip
    assert made.parameters["made_from"] == name
    assert made.parameters["without"] == {"filter": "best 3 by log-probability", "queries": 5}
    for keep in (0, 9):
        with pytest.raises(ConfigError, match="cannot be kept of 8"):
            queries.best(workspace, name, keep)


@pytest.mark.slow
@pytest.mark.parametrize("endpoint", ["silent", "refusing"])
def test_an_endpoint_without_log_probabilities_writes_all_the_same_and_it_is_said(
    server: ChatServer, workspace: Workspace, make_corpus: CorpusMaker, make_job: JobMaker, endpoint: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("CDP_WORKSPACE", str(workspace.root))
    if endpoint == "refusing":
        server.script = ["no logprobs"]
    name = written(server, workspace, make_corpus, make_job, logprobs=True)
    lines = list(query_sets.iter_lines(workspace, name))
    assert sum(len(line["queries"]) for line in lines) == 8
    assert not any("logprobs" in line for line in lines)
    assert main(["queries", "best", name, "--keep", "2"]) != 0
    assert "has a log-probability, so they cannot be ranked" in capsys.readouterr().err


@pytest.mark.parametrize("value", [-(10**399), 10**4000, float("nan"), float("-inf"), -1e308, None, "x", [1]], ids=str)
def test_a_number_that_is_no_log_probability_costs_no_answer(
    server: ChatServer, workspace: Workspace, make_corpus: CorpusMaker, make_job: JobMaker, value: object
) -> None:
    server.logprobs = lambda content: [-0.5, value]  # type: ignore[list-item]
    name = written(server, workspace, make_corpus, make_job, logprobs=True)
    lines = list(query_sets.iter_lines(workspace, name))
    assert sum(len(line["queries"]) for line in lines) == 8
    assert not any("logprobs" in line for line in lines)
    spent = [line["usage"] for line in lines]
    assert sum(usage["requests"] for usage in spent) == len(server.bodies)
    assert not any("estimated" in usage for usage in spent)


def test_a_kept_answer_keeps_its_log_probability(server: ChatServer, workspace: Workspace) -> None:
    from cdp.base.records import Document

    server.logprobs = told
    config = SynthesisConfig(corpus="c", generator="openai", model=MODEL, base_url=server.url, logprobs=True)
    document, method = Document("d1", "Basalt is a dark rock."), METHODS["inpars_gbq"]
    with AnswerCache(workspace) as cache:
        generator = make_generator(config, api_key=KEY)
        first = generate_for(document, method, 2, generator, cache=cache)
        asked = len(server.bodies)
        again = generate_for(document, method, 2, generator, cache=cache)
    assert len(server.bodies) == asked
    assert again.logprobs == first.logprobs != ()


@pytest.mark.parametrize(
    ("content", "mean"),
    [
        ([{"logprob": -1.0}, {"logprob": -3}], -2.0),
        ([], None),
        (None, None),
        ("x", None),
        ([{"logprob": None}, {"logprob": -1.0}], None),
        ([{"logprob": float("nan")}], None),
        ([{"logprob": True}], None),
        ([7], None),
    ],
)
def test_what_is_no_log_probability_counts_as_none(content: object, mean: float | None) -> None:
    assert _mean_logprob({"content": content}) == mean
    assert _mean_logprob(content) is None


def test_it_is_refused_where_it_cannot_be_had() -> None:
    with pytest.raises(ConfigError, match="needs an endpoint"):
        SynthesisConfig.from_dict({"corpus": "c", "method": "inpars_gbq", "logprobs": True})
    with pytest.raises(ConfigError, match="all queries at once"):
        method_of(SynthesisConfig.from_dict({"corpus": "c", "generator": "openai", "logprobs": True}))
