"""Runs that differ in nothing but the seed: recognised by their settings, and averaged query by query."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from cdp import jobs
from cdp.base.errors import CdpError
from cdp.base.statistics import has_spread, seed_spread
from cdp.base.workspace import Workspace
from cdp.query_sets import list_query_sets

Families = Mapping[str, tuple[str, ...]]

NO_PART_OF_THE_RECIPE = ("name", "gpus", "gpu_ids", "save_steps")
"""Settings that say what a run is called or where it runs: runs that differ in these alone are one recipe."""


def families(settings: Mapping[str, Mapping[str, Any] | None]) -> dict[str, tuple[str, ...]]:
    """{retriever: those it differs from in the seed alone, itself among them, by seed}, of retrievers with what they
    were trained with (None for what was not trained here).

    A training that was run twice with one seed counts once, by its newest run; one without a relative is left out.
    """
    runs_by_recipe: dict[str, dict[int, str]] = defaultdict(dict)
    for retriever in sorted(settings):  # ids begin with their time: the newest comes last
        config = settings[retriever]
        if config is not None:
            recipe = sorted((key, config[key]) for key in config if key not in ("seed", *NO_PART_OF_THE_RECIPE))
            runs_by_recipe[repr(recipe)][int(config.get("seed") or 0)] = retriever
    related = [
        tuple(by_seed[seed] for seed in sorted(by_seed)) for by_seed in runs_by_recipe.values() if len(by_seed) > 1
    ]
    return {member: members for members in related for member in members}


def settings_of(workspace: Workspace, retriever: str) -> dict[str, Any] | None:
    """The settings that a retriever was trained with; None if it was not trained here, or nobody can tell."""
    if not (workspace.jobs / retriever / "spec.json").is_file():
        return None
    try:
        return dict(jobs.load_spec(workspace, retriever).config)
    except CdpError:
        return None


def averaged(
    rows: Sequence[dict[str, Any]], scores: Mapping[str, Mapping[str, float]], families: Families, measure: str
) -> tuple[list[dict[str, Any]], dict[str, Mapping[str, float]]]:
    """One row per family and place instead of one per run, and the scores of all rows.

    A family goes by the id of its lowest seed. Its score on a query is the mean over its runs; ``seeds`` counts these,
    ``seed_sd`` is the standard deviation of their means in percent (None where all are the same), ``id`` joins
    their ids by ``+``.
    """
    runs_by_family: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        lead = families.get(row["retriever_id"], (row["retriever_id"],))[0]
        runs_by_family[lead, row["benchmark"], row["split"], row["protocol"], row["benchmark_hash"]].append(row)
    means: dict[str, Mapping[str, float]] = {}
    averaged_rows = []
    for (lead, *_), runs in runs_by_family.items():
        members = families.get(lead, (lead,))
        runs.sort(key=lambda row: members.index(row["retriever_id"]) if row["retriever_id"] in members else 0)
        joined = "+".join(row["id"] for row in runs)
        of_runs = [scores[row["id"]] for row in runs]
        means[joined] = {
            query: sum(run_scores[query] for run_scores in of_runs) / len(of_runs)
            for query in of_runs[0]
            if all(query in run_scores for run_scores in of_runs)
        }
        by_run = [row[measure] for row in runs]
        by_seed = [100 * value for value in by_run]
        spread = seed_spread(by_seed)[1] if has_spread(by_seed) else None
        name = str(runs[0]["retriever_name"])
        averaged_rows.append(
            {
                **runs[0],
                "id": joined,
                "retriever_id": lead,
                "retriever_name": _averaged_name(name, len(members)),
                measure: sum(by_run) / len(by_run),
                "seeds": len(runs),
                "marks": tuple(dict.fromkeys(mark for run in runs for mark in run.get("marks", ()))),
                "seed_sd": spread,
            }
        )
    return averaged_rows, means


def _averaged_name(name: str, seeds: int) -> str:
    """``… · seed 0 · …`` becomes ``… · 3 seeds · …``; a name that says no seed has them at its end."""
    if seeds < 2:
        return name
    named = re.sub(r" · seed \d+\b", f" · {seeds} seeds", name, count=1)
    return named if named != name else f"{name} ({seeds} seeds)"


WRITTEN_BY = "queries_written_by"
"""Beside the training settings that differ: who wrote the queries, and under which licence."""


def settings_of_row(workspace: Workspace, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a run was trained with; None if it was not trained here, or nobody can tell."""
    if row.get("trained") is not None:
        settings: Mapping[str, Any] = row["trained"].settings
        return settings
    return settings_of(workspace, row["retriever_id"]) if row["retriever_kind"] == "job" else None


def differing(
    workspace: Workspace, names: dict[str, str], of: Mapping[str, Mapping[str, Any] | None], without: set[str]
) -> dict[str, dict[str, Any]]:
    """The training settings in which the retrievers differ: setting → retriever → value."""
    configs = {name: of[retriever_id] for retriever_id, name in names.items()}
    trained = {name: config for name, config in configs.items() if config is not None}
    settings: dict[str, dict[str, Any]] = {}
    for setting in dict.fromkeys(key for config in trained.values() for key in config if key not in without):
        values = {name: config.get(setting) for name, config in trained.items()}
        if len({str(value) for value in values.values()}) > 1:
            settings[setting] = values
    if "query_set" in settings:
        by = {q.id: q.written_by + (f", {q.licence}" if q.licence else "") for q in list_query_sets(workspace)}
        settings[WRITTEN_BY] = {name: by.get(str(set_id), "–") for name, set_id in settings["query_set"].items()}
    return settings
