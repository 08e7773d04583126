"""Commands that train: train and what it would take; and on trained models."""

from __future__ import annotations

from typing import Annotated, Any

from cdp.base.config import TrainingConfig
from cdp.base.text import duration, name_and_split, size
from cdp.cli import display
from cdp.cli.answers import Run, warn, warn_incomplete
from cdp.cli.declare import AllowIncomplete, AllowLeakage, command
from cdp.results import models as trained_models
from cdp.results.models import TrainedModel
from cdp.services import models, training
from cdp.training import plan as training_plan
from cdp.training.plan import TrainingPlan


@command("train", places=("query_set",), project=("query_set",), job=True)
def train(
    run: Run,
    config: TrainingConfig,
    *,
    plan: Annotated[bool, "pairs, steps, time, licences; start nothing"] = False,
    evaluate: Annotated[
        list[str] | None, "evaluate before and after on this benchmark; repeatable", "BENCHMARK[:SPLIT]"
    ] = None,
    allow_incomplete: AllowIncomplete = False,
    allow_leakage: AllowLeakage = False,
) -> int:
    """Train a retriever; with --plan only say what it would do and take."""
    if plan:
        planned = training.plan(run.workspace, config)
        warn_incomplete(run.workspace, *training_plan.trained_on(planned.settings))
        return run.say(display.plain(planned, settings=planned.settings.to_dict()), _plan(planned))
    begun = training.start(
        run.workspace,
        config,
        benchmarks=[name_and_split(text) for text in evaluate or ()],
        allow_incomplete=allow_incomplete,
        allow_leakage=allow_leakage,
    )
    warn_incomplete(run.workspace, *training_plan.trained_on(config))
    return run.started(begun.job_id, *begun.evaluations)


def _plan(plan: TrainingPlan) -> dict[str, Any]:
    return {
        "pairs": f"{plan.pairs:,} over {plan.documents:,} documents",
        "steps": f"{plan.steps:,} of {plan.settings.loop.batch_size} pairs",
        "time": "unknown" if plan.seconds is None else f"{duration(plan.seconds)} without evaluations",
        **{f"licence, {what}": text for what, text in plan.licences.items()},
        "note": plan.notes,
    }


# models

Trained = Annotated[str, "a training job, by its id, name or a unique prefix of its id"]


def _value(model: TrainedModel) -> dict[str, Any]:
    names = ("id", "title", "base", "query_set", "licence", "bytes", "folder", "scores", "faults")
    return {name: display.plain(getattr(model, name)) for name in names}


@command("models list")
def models_list(run: Run) -> int:
    """The models that were trained here."""
    rows = [_value(model) for model in trained_models.list_models(run.workspace)]
    view = [
        {**row, "size": size(row["bytes"]), "evaluations": len(row["scores"]),
         "faults": list(dict.fromkeys(fault["kind"] for fault in row["faults"]))}
        for row in rows
    ]  # fmt: skip
    columns = ["id", "title", "base", "query_set", "size", "evaluations"]
    columns += ["faults"] if any(row["faults"] for row in rows) else []
    return run.say(rows, view, columns, "No model yet: train QUERY_SET")


@command("models show")
def models_show(run: Run, retriever: Trained) -> int:
    """One model: its files, scores, licence, and what keeps it from being given away."""
    model = trained_models.show(run.workspace, retriever)
    value = {**_value(model), "files": dict(model.files)}
    view = {
        **value,
        "bytes": size(model.bytes),
        "files": [f"{path}: {size(n)}" for path, n in model.files],
        "scores": [" ".join([f"{s.benchmark}: NDCG@10 {s.ndcg:.2f}", *s.badges]) for s in model.scores],
        "faults": [fault.sentence.replace("**", "") for fault in model.faults],
    }
    return run.say(value, view)


@command("models push")
def models_push(
    run: Run,
    retriever: Trained,
    repository: Annotated[str, "its name on the hub: owner/name"],
    *,
    public: Annotated[bool, "open to everyone"] = False,
    allow_leakage: Annotated[bool, "upload although it saw judged queries; the card says so at its top"] = False,
    allow_incomplete: Annotated[
        bool, "upload although its training was stopped or its query set was incomplete; the card says so at its top"
    ] = False,
) -> int:
    """Upload a model with its card to the Hugging Face hub; private unless --public."""
    allowed = {"allow_leakage": allow_leakage, "allow_incomplete": allow_incomplete}
    model, where = models.push(run.workspace, retriever, repository, public=public, **allowed)
    for fault in model.faults:
        warn(fault.sentence.replace("**", ""))
    return run.say(where, where)


@command("models export")
def models_export(
    run: Run, retriever: Trained, out: Annotated[str, "the folder to write; there must be none of that name"]
) -> int:
    """Copy a model to a folder that sentence-transformers loads, with its scores on its card."""
    value = {"id": retriever, "folder": str(models.export(run.workspace, retriever, out))}
    return run.say(value, value)
