"""How the compared retrievers came about: their training curves, and the settings in which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.charts.results import LABELS, curve, parallel
from cdp.services import jobs
from cdp.services.leaderboard import means
from cdp.services.results import Comparison
from cdp.ui.compare import focus
from cdp.ui.compare.comparison import names_of
from cdp.ui.jobs.live import choose_curve
from cdp.ui.shell import charts, tables
from cdp.ui.shell.text import label_of

OUTCOME = "NDCG@10 (%)"


def measured(workspace: Workspace, comparison: Comparison) -> dict[str, dict[str, float]]:
    """The last value of each measure, by job, of the shown retrievers that were trained here."""
    there = (key for key in names_of(comparison) if (workspace.jobs / key / "metrics.jsonl").exists())
    return {key: values for key in there if (values := _latest(workspace, key))}


def curves(
    workspace: Workspace,
    comparison: Comparison,
    chosen: Sequence[str],
    palette: Mapping[str, str],
    measured: Mapping[str, Mapping[str, float]],
) -> None:
    """The training curves of all that were trained here, one upon the other."""
    runs = {key: name for key, name in names_of(comparison).items() if key in measured}
    measures = [measure for measure in LABELS if any(measure in values for values in measured.values())]
    if not measures:
        return
    measure = choose_curve(measures, key="compare_curve")
    lines = {
        name: _points(workspace, key, measure)
        for key, name in runs.items()
        if measure in measured[key] and (not chosen or name in chosen or not set(chosen) & set(runs.values()))
    }
    charts.show(
        curve(lines, measure, palette=palette),
        key=f"curves_{measure}",
        alt=f"{LABELS[measure]} over the training steps. Last values: "
        + ", ".join(f"{name} {measured[key][measure]:.4g}" for key, name in runs.items() if name in lines),
        caption="One line per training. Losses are comparable only with the same batch size and weighting."
        if measure == "loss"
        else "",
    )


def _latest(workspace: Workspace, job: str) -> dict[str, float]:
    try:
        return jobs.latest(workspace, job)
    except CdpError:
        return {}


def _points(workspace: Workspace, job: str, measure: str) -> list[dict[str, float]]:
    logged = jobs.curve(workspace, job, measure)
    return [{"step": step, measure: value} for step, value in zip(logged.steps, logged.values, strict=True)]


def settings(comparison: Comparison, chosen: Sequence[str], palette: Mapping[str, str]) -> None:
    """Only the settings in which the compared retrievers differ: as lines to the outcome, and as a table."""
    trained = list(dict.fromkeys(name for values in comparison.settings.values() for name in values))
    axes = _axes(comparison, trained)
    if axes:
        names = names_of(comparison)
        charts.show(
            parallel(axes, palette=palette, focus=[name for name in chosen if name in trained]),
            key="parallel",
            turn=focus.turn(),
            alt=f"One line per trained retriever over {', '.join(axes)}. The table below holds the same values.",
            caption="Each line is a trained retriever; the last axis is its mean NDCG@10 over the benchmarks "
            "that all shown retrievers share. Click a point to highlight its line.",
            on_pick=lambda points: focus.toggle(names, points),
        )
    tables.show(
        {
            "Setting": [label_of(key) for key in comparison.settings],
            **{name: [_shown(values.get(name)) for values in comparison.settings.values()] for name in trained},
        },
        alt="Training settings in which the compared retrievers differ",
    )


def _axes(comparison: Comparison, trained: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """The settings as axes with their values by retriever, and what came of them last."""
    outcome = means(comparison)[0].values
    if len(trained) < 2 or not outcome:
        return {}
    axes = {label_of(key): {name: values.get(name) for name in trained} for key, values in comparison.settings.items()}
    return {**axes, OUTCOME: {name: round(outcome[name], 2) for name in trained}}


def _shown(value: object) -> str:
    return "" if value is None else str(value)
