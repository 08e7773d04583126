"""The planner's facts: which rate counts, what a machine keeps, what finished jobs say, prices as everywhere else."""

from __future__ import annotations

import pytest

from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError, ConfigError, NotFoundError
from cdp.base.workspace import Workspace, write_json
from cdp.corpus import resolve_corpus
from cdp.planning.config import PlanConfig
from cdp.planning.rates import Basis
from cdp.planning.scale import ScalePlan
from cdp.planning.stages import Stage
from cdp.services import planning
from cdp.services.planning import history, machine
from cdp.services.queries import synthesis
from cdp.services.sharing import modes
from cdp.services.workspace import demo
from tests.pages.support import ended_job

STATIC = "training/static-minilm/cpu"


def planned(workspace: Workspace, **settings: object) -> ScalePlan:
    return planning.plan(workspace, PlanConfig.from_dict(settings))


def stage(plan: ScalePlan, name: str) -> Stage:
    return next(s for s in plan.stages if s.name == name)


def trained(workspace: Workspace, job_id: str, pairs_per_second: float, **more: object) -> None:
    folder = ended_job(workspace, job_id, "training", {"retriever": "static-minilm"})
    value = {
        "retriever": "static-minilm",
        "pairs_per_second": pairs_per_second,
        "seconds": 10.0,
        "processes": 1,
        **more,
    }
    write_json(folder / "results" / "training.json", value)


def evaluated(workspace: Workspace, job_id: str, *, reused: int = 0) -> None:
    folder = ended_job(workspace, job_id, "evaluation", {"retriever": "static-minilm"})
    value = {
        "retriever": {"id": "static-minilm"},
        "benchmark": {"n_documents": 5000, "n_queries": 100},
        "counts": {"embeddings_reused": reused},
        "seconds": 3.0,
        "seconds_by_phase": {"encoding documents": 2.0, "encoding queries": 0.1, "searching": 0.5},
    }
    write_json(folder / "results" / "evaluation.json", value)


def test_what_a_user_told_counts_before_finished_jobs_before_what_was_measured_before_what_is_published(
    workspace: Workspace,
) -> None:
    def basis(**settings: object) -> tuple[float, Basis]:
        rate = stage(planned(workspace, **settings), "training").rate
        assert rate is not None
        return rate.value, rate.basis

    assert basis() == (2500.0, Basis.PUBLISHED)
    machine.keep(workspace, {STATIC: [[4000.0, 1.0, None]]})
    assert basis() == (4000.0, Basis.HERE)
    trained(workspace, "training-1", 900.0)
    trained(workspace, "training-2", 1100.0)
    assert basis() == (1000.0, Basis.HERE)
    assert basis(rates="training=50..70") == (60.0, Basis.CLUSTER)


def test_finished_jobs_say_how_fast_they_were(workspace: Workspace) -> None:
    trained(workspace, "training-1", 900.0)
    evaluated(workspace, "evaluation-1")
    evaluated(workspace, "evaluation-2", reused=1)
    found = history.rates(workspace)
    assert found["encoding/static-minilm/cpu"].value == 2500.0
    assert found["encoding/static-minilm/cpu"].measurements == 1  # embeddings that were there took no time
    assert found["search/cpu"].value == 5000 * 100 * 384 / 0.5
    # The jobs took 12.5 s each: 2.5 s, 9.5 s and 9.5 s besides their work.
    assert 1 / found["starting"].value == pytest.approx(9.5)
    assert found[STATIC].largest == 9000.0


def test_results_are_read_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated(workspace, "evaluation-1")
    first = history.rates(workspace)
    monkeypatch.setattr(history, "read_result", lambda folder: pytest.fail(f"{folder} is read again"))
    assert history.rates(workspace) == first != {}


def test_stopped_failed_and_damaged_jobs_say_nothing(workspace: Workspace) -> None:
    trained(workspace, "training-1", 900.0, stopped=True)
    folder = ended_job(workspace, "training-2", "training", {}, outcome="failed")
    write_json(
        folder / "results" / "training.json", {"retriever": "static-minilm", "pairs_per_second": 1, "seconds": 1}
    )
    ended_job(workspace, "evaluation-1", "evaluation", {})
    trained(workspace, "training-3", 900.0, seconds="long")
    assert history.rates(workspace) == {}


def test_template_queries_count_by_processor_and_cached_answers_not_at_all(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdp.synthesis.generators.spread.processors", lambda: 4)
    for name, generator, documents, paid in (
        ("synthesis-1", "template", 2000, 0), ("synthesis-2", "openai", 100, 100), ("synthesis-3", "openai", 100, 0),
    ):  # fmt: skip
        folder = ended_job(workspace, name, "synthesis", {"generator": generator})
        usage = {"requests": documents if generator == "openai" else 0}
        value = {"n_documents": documents, "seconds": 10.0, "model": "gpt", "usage": usage, "spent": {"requests": paid}}
        write_json(folder / "results" / "synthesis.json", value)
    found = history.rates(workspace)
    assert found["synthesis/template/cpu"].value == 50.0  # 2,000 in 10 s on four processors
    assert (found["synthesis/gpt/cpu"].value, found["synthesis/gpt/cpu"].measurements) == (10.0, 1)


def test_another_machine_that_shares_the_workspace(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "this_machine", lambda: "node-7")
    machine.keep(workspace, {"encoding/contriever/gpu": [[100.0, 1.0, 400.0], [100.0, 0.5, 400.0]]})
    monkeypatch.undo()
    assert planning.list_machines(workspace) == ["node-7"]
    here = stage(planned(workspace, retriever="contriever", gpus=1), "encoding")
    there = stage(planned(workspace, retriever="contriever", gpus=1, measured_on="node-7"), "encoding")
    assert here.span is None
    assert there.rate is not None
    assert (there.rate.value, there.rate.low, there.rate.basis) == (150.0, 100.0, Basis.CLUSTER)
    with pytest.raises(NotFoundError, match="node-7"):
        planned(workspace, measured_on="node-8")
    machine.keep(workspace, {f"measures/{depth}": [[100.0, 1.0, None]] for depth in ("0", "-5", "x", "5")})
    assert set(machine.load(workspace, machine.this_machine()).observed) == {"measures/5"}
    (workspace.root / "rates" / "node-7.json").write_text('{"observed": 3}')
    with pytest.raises(NotFoundError):
        planned(workspace, measured_on="node-7")


def test_prices_are_those_of_the_price_table_and_of_an_estimate_over_the_same_corpus(workspace: Workspace) -> None:
    demo.load(workspace)
    settings = {"generator": "openai", "model": "gpt-4o-mini", "method": "diverse", "per_doc": 5}
    corpus = resolve_corpus(workspace, "demo")
    known = synthesis.estimate(workspace, SynthesisConfig.from_dict({**settings, "corpus": corpus.id}))
    plan = planned(workspace, corpus="demo", generator="openai:gpt-4o-mini")
    assert plan.work.documents == corpus.n_documents
    writer = plan.work.writer
    assert (writer.requests, writer.output_tokens) == (known.requests, known.output_tokens)
    assert writer.input_tokens == pytest.approx(known.input_tokens, rel=0.05)
    assert writer.dollars == pytest.approx((writer.input_tokens * 0.15 + writer.output_tokens * 0.60) / 1e6)
    assert planned(workspace, generator="openai:nobody-prices-me").priced is False


@pytest.mark.parametrize("documents", ["8k", "80k", "8.8M", "1B"])
def test_every_size_of_the_issue_has_a_plan(workspace: Workspace, documents: str) -> None:
    plan = planned(workspace, documents=documents, retriever="contriever", machines=16, gpus=8, memory_gb=512)
    assert all(stage.arithmetic for stage in plan.stages)
    assert plan.unknown  # nobody has measured a GPU here, and nothing pretends to know one


@pytest.mark.parametrize(
    "settings",
    [{"generator": "nobody"}, {"generator": "template:x"}, {"retriever": "contriver"}, {"documents": "lots"},
     {"method": "dragon_s_paper"}, {"rates": "encoding=fast"}, {"corpus": "nowhere"}, {"per_doc": 1001}],
)  # fmt: skip
def test_what_cannot_be_planned_is_said_in_one_sentence(workspace: Workspace, settings: dict[str, object]) -> None:
    with pytest.raises(CdpError) as caught:
        planned(workspace, **settings)
    assert caught.value.hint or isinstance(caught.value, (NotFoundError, ConfigError))


def test_a_training_is_looked_for_among_the_jobs_alone(workspace: Workspace) -> None:
    write_json(workspace.root / "elsewhere" / "results" / "training.json", {"retriever": "static-minilm"})
    workspace.jobs.mkdir(exist_ok=True)
    assert planned(workspace, retriever="../elsewhere").work.model.name == "../elsewhere"


def test_a_read_only_dashboard_plans_and_does_not_measure(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(modes.READ_ONLY, "1")
    modes.in_dashboard()
    assert planned(workspace, documents="1B").span.seconds > 0
    assert not workspace.root.exists()
    with pytest.raises(modes.ReadOnlyError):
        planning.measure(workspace)


def test_the_command_shows_the_same_plan() -> None:
    config = PlanConfig.from_dict({"documents": "8.8M", "gpus": 8, "rates": "encoding=900,training=5"})
    line = planning.command(config)
    assert "plan --documents 8.8M" in line
    assert "--gpus 8" in line
    assert "--rates encoding=900,training=5" in line
