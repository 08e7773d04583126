"""Rates of the jobs that have finished in a workspace: what they did by how long it took them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from cdp import jobs
from cdp.base.errors import WorkspaceError
from cdp.base.workspace import Workspace, fitting, read_json_or_none
from cdp.evaluation.results import read_result
from cdp.jobs import JobView, State
from cdp.planning.rates import Basis, Observation, Rate, rate_of
from cdp.planning.stages import UNITS
from cdp.planning.timing import STARTING
from cdp.planning.workload import CPU, GPU
from cdp.retrievers import PRESETS
from cdp.retrievers.trained import training_result
from cdp.services import cached
from cdp.synthesis.generators.spread import processes_for

NEWEST = 24
"""Jobs that are looked at: older ones ran an older version, perhaps on another machine. Fewer than ``cached`` keeps."""

Found = Iterator[tuple[str, Observation]]


def rates(workspace: Workspace) -> dict[str, Rate]:
    """By key; only of jobs that ran from their start to their end in one attempt."""
    observed: dict[str, list[Observation]] = defaultdict(list)
    views = jobs.list_jobs(workspace, list(_OBSERVERS))
    for view in [v for v in views if v.state is State.FINISHED and v.attempt == 1][:NEWEST]:
        with suppress(WorkspaceError):  # what is damaged says nothing
            for key, observation in _observed(view):
                observed[key].append(observation)
    made = {}
    for key, observations in observed.items():
        unit = "starts" if key == STARTING else UNITS[key.partition("/")[0]]
        noun = "finished job" if len(observations) == 1 else "finished jobs"
        rate = rate_of(observations, unit, Basis.HERE, f"{len(observations)} {noun} in this workspace")
        if rate is not None:
            made[key] = rate
    return made


def _observed(view: JobView) -> list[tuple[str, Observation]]:
    """What a finished job says; read once, for its results stay as they are and may hold many scores."""
    results = view.folder / "results"

    def read() -> list[tuple[str, Observation]]:
        with fitting(results):
            return list(_OBSERVERS[view.kind](view))

    return cached.of_file(results, "rates", read)


def _device(view: JobView) -> str:
    return CPU if set(view.devices) <= {CPU} else GPU


def _start(view: JobView, working: float) -> Found:
    if view.seconds and view.seconds > working:
        yield STARTING, Observation(1.0, view.seconds - working)


def _training(view: JobView) -> Found:
    result = training_result(view.folder)
    if not result or result.get("stopped") or not result.get("pairs_per_second") or not result.get("seconds"):
        return
    seconds, processes = float(result["seconds"]), int(result.get("processes") or 1)
    seen = float(result["pairs_per_second"]) * seconds / processes
    yield f"training/{result.get('retriever', '')}/{_device(view)}", Observation(seen, seconds)
    yield from _start(view, seconds)


def _evaluation(view: JobView) -> Found:
    result = read_result(view.folder)
    if not result or not isinstance(result.get("seconds_by_phase"), Mapping):
        return
    phases, benchmark = result["seconds_by_phase"], result["benchmark"]
    documents, queries = int(benchmark.get("n_documents") or 0), int(benchmark.get("n_queries") or 0)
    name, device = _trained_from(view, result), _device(view)
    if "encoding documents" in phases and not result["counts"].get("embeddings_reused"):
        yield f"encoding/{name}/{device}", Observation(documents, float(phases["encoding documents"]))
    preset = PRESETS.get(name)
    if "searching" in phases and preset is not None and preset.dimensions:
        work = float(documents) * queries * preset.dimensions
        yield f"search/{device}", Observation(work, float(phases["searching"]))
    if "encoding documents" in phases:
        yield from _start(view, float(result.get("seconds") or 0.0))


def _trained_from(view: JobView, result: Mapping[str, Any]) -> str:
    """The preset that a trained retriever began as: it is as fast."""
    name = str(result["retriever"].get("id") or "")
    trained = training_result(view.folder.parent / name) if name and name not in PRESETS else None
    return str(trained["retriever"]) if trained else name


def _synthesis(view: JobView) -> Found:
    result = read_json_or_none(view.folder / "results" / "synthesis.json")
    if not isinstance(result, dict) or not result.get("seconds"):
        return
    used, paid = result.get("usage") or {}, result.get("spent") or {}
    if paid.get("requests", 0) < used.get("requests", 0):
        return  # answers that were there already took no time
    generator, documents = str(view.config.get("generator") or ""), int(result["n_documents"])
    name = generator if generator == "template" else str(result.get("model") or generator)
    share = documents / (processes_for(documents) if generator == "template" else 1)
    yield f"synthesis/{name}/{_device(view)}", Observation(share, float(result["seconds"]))


_OBSERVERS = {"training": _training, "evaluation": _evaluation, "synthesis": _synthesis}
