"""Commands on runs: train and what it takes, trained models, evaluate, leaderboard, comparisons, imported runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from cdp.base.config import EvaluationConfig, ResultImportConfig, TrainingConfig
from cdp.base.text import counted, duration, interval, name_and_split, p_value, signed, size, written
from cdp.cli import answers
from cdp.cli.answers import Run, note_sent, warn, warn_incomplete
from cdp.cli.declare import AllowIncomplete, AllowLeakage, command
from cdp.results import board, differences, paper
from cdp.results import models as trained_models
from cdp.results.board import ResultRow
from cdp.results.differences import Comparison
from cdp.results.models import TrainedModel
from cdp.results.paper import TableCell
from cdp.retrievers import sending
from cdp.services import evaluation, jobs, models, training
from cdp.training import plan as training_plan
from cdp.training.plan import TrainingPlan


@command("evaluate", places=("retriever",), project=("benchmark",), job=True)
def evaluate(run: Run, config: EvaluationConfig) -> int:
    """Evaluate a retriever on a benchmark."""
    note_sent(sending.for_evaluation(run.workspace, config))
    return run.started(jobs.start(run.workspace, "evaluation", config))


@command("results list", project=())
def list_(
    run: Run,
    *,
    benchmark: Annotated[list[str] | None, "only this one; repeatable"] = None,
) -> int:
    """The leaderboard: every recipe on every benchmark, runs that differ in the seed alone averaged, the best first."""
    evaluations = board.list_evaluations(run.workspace, run.scope)
    every = board.list_rows(run.workspace, evaluations)
    rows = [row for row in every if not benchmark or {*row.called} & {*benchmark}]
    columns = ["NDCG@10", "recipe", "seeds", "index", "ms per query", "benchmark", "read with", "start", "id"]
    if any(row.per_file is not None for row in rows):
        columns[1:1] = ["per file", "judged per"]

    empty = "No row fits." if every else "No result yet: evaluate RETRIEVER --benchmark NAME"
    return run.say([row.record() for row in rows], answers.table([*map(_cells, rows)], columns, empty))


def _cells(row: ResultRow) -> dict[str, Any]:
    return {
        "NDCG@10": row.score,
        "per file": row.per_file,
        "judged per": row.judged_per,
        "recipe": row.retriever,
        "seeds": row.seeds if row.trained else "",
        "index": written(row.index_bytes, size),
        "ms per query": written(row.query_ms, "{:.3g}".format),
        "benchmark": row.place,
        "read with": ", ".join(row.words),
        "start": row.start,
        "id": row.retriever_id,
    }


@command("results compare", project=())
def compare(
    run: Run,
    *,
    baseline: Annotated[str, "a retriever: preset, training job, or model"],
    retriever: Annotated[list[str] | None, "compare only this one; repeatable"] = None,
    benchmark: Annotated[list[str] | None, "only on this one; repeatable"] = None,
    format: Annotated[
        Literal["table", "csv", "json", "markdown", "latex"],
        "markdown, latex: a paper's table; csv, json: every difference in full",
    ] = "table",
) -> int:
    """A table of retrievers by benchmarks, and every difference from a baseline with its tests."""
    # Holm's correction counts the runs of the project alone.
    own = board.list_evaluations(run.workspace, run.scope)
    comparison = differences.compare(run.workspace, baseline, retriever, evaluations=own)
    if benchmark:
        comparison = comparison.on(benchmark)

    run.json = run.json or format == "json"
    if not run.json and format != "table":
        return run.say(None, paper.write(comparison, format).removesuffix("\n"))

    remarks = board.remarks(comparison.rows)
    if comparison.left_out and retriever is None:
        left = counted(comparison.left_out, "training")
        remarks.append(f"{left} of studies left out: --retriever NAME compares them, results list names them.")

    return run.say({**paper.to_dict(comparison), "remarks": remarks}, _comparison(comparison, remarks))


def _comparison(comparison: Comparison, remarks: Collection[str]) -> str:
    """Return the table of a paper, then each difference with its tests, and the remarks."""
    table = paper.paper_table(comparison)
    heads, scores = ("NDCG@10", *table.columns), []
    for name, cells in table.rows:
        scores.append(dict(zip(heads, (name, *map(TableCell.shown, cells)), strict=True)))

    parts = [answers.table(scores, heads, "no results to compare")]
    rows = [_difference(row) for row in comparison.rows if row.difference is not None]
    if rows:
        columns = [*rows[0]]
        if not any(row.marks for row in comparison.rows):
            columns.remove("marks")
        parts.append(f"Differences from {comparison.baseline}, in points:\n{answers.table(rows, columns)}")

    if table.notes:
        parts += [f"*best*, _second_, † {table.notes[0]}", *table.notes[1:]]
    if remarks:
        parts.append("\n".join(remarks))

    return "\n\n".join(parts)


def _difference(row: ResultRow) -> dict[str, Any]:
    """Return the cells of a difference; its marks stand in a table where a row has any."""
    assert row.difference is not None
    difference, between = signed(row.difference), interval((row.low, row.high), sign=True)
    if row.significant:
        difference += "†"
    if row.withheld:
        between = "withheld"

    return {
        "benchmark": row.place,
        "retriever": row.retriever,
        "NDCG@10": row.score,
        "difference": difference,
        "95% interval": between,
        "p (t)": p_value(row.p_t),
        "p (seeds)": p_value(row.p_seeds),
        "p (Holm)": p_value(row.p_holm),
        "queries": row.units,
        "marks": row.marks,
    }


@command("results export")
def export(
    run: Run,
    id: Annotated[str, "an evaluation: its job's id or a unique prefix of it"],
    *,
    out: Annotated[str, "the new file; - for standard output"],
) -> int:
    """Write what an evaluation retrieved as a TREC run: query Q0 document rank score tag."""
    with run.output(out, ".run") as target:
        path, n = evaluation.export_run(run.workspace, id, target)
    return run.say({"id": id, "path": str(path), "lines": n}, f"{counted(n, 'line')}\n  {path}")


@command("results import", places=("path",), job=True)
def import_(run: Run, config: ResultImportConfig) -> int:
    """Take in another program's TREC run, or MTEB's predictions or results, as an evaluation."""
    return run.started(jobs.start(run.workspace, "import", config))


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
        return run.say(answers.plain(planned, settings=planned.settings.to_dict()), _plan(planned))

    begun = training.start(
        run.workspace,
        config,
        benchmarks=list(map(name_and_split, evaluate or ())),
        allow_incomplete=allow_incomplete,
        allow_leakage=allow_leakage,
    )

    warn_incomplete(run.workspace, *training_plan.trained_on(config))
    return run.started(begun.job_id, *begun.later)


def _plan(plan: TrainingPlan) -> dict[str, Any]:
    return {
        "pairs": f"{plan.pairs:,} over {plan.documents:,} documents",
        "steps": f"{plan.steps:,} of {plan.settings.loop.batch_size} pairs",
        "time": written(plan.seconds, lambda seconds: f"{duration(seconds)} without evaluations", "unknown"),
        **{f"licence, {what}": text for what, text in plan.licences.items()},
        "note": plan.notes,
    }


Trained = Annotated[str, "a training job, by its id, name or a unique prefix of its id"]


def _value(model: TrainedModel) -> dict[str, Any]:
    names = ("id", "title", "base", "query_set", "licence", "bytes", "folder", "scores", "faults")
    return answers.plain(answers.picked(model, names))


@command("models list")
def models_list(run: Run) -> int:
    """The models that were trained here."""
    rows = [_value(model) for model in trained_models.list_models(run.workspace)]
    view = []
    for row in rows:
        kinds = dict.fromkeys(fault["kind"] for fault in row["faults"])
        view.append({**row, "size": size(row["bytes"]), "evaluations": len(row["scores"]), "faults": [*kinds]})

    columns = ["id", "title", "base", "query_set", "size", "evaluations"]
    if any(row["faults"] for row in rows):
        columns.append("faults")
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
        "faults": [fault.text for fault in model.faults],
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
        warn(fault.text)

    return run.say(where, where)


@command("models export")
def models_export(
    run: Run, retriever: Trained, out: Annotated[str, "the folder to write; there must be none of that name"]
) -> int:
    """Copy a model to a folder that sentence-transformers loads, with its scores on its card."""
    value = {"id": retriever, "folder": str(models.export(run.workspace, retriever, out))}
    return run.say(value, value)
