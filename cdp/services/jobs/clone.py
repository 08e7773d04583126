"""A job once more, with changed settings: its configuration through the same door as a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdp.base.config import (
    DownloadConfig,
    EvaluationConfig,
    FilterConfig,
    IndexConfig,
    MetricsConfig,
    RoundTripConfig,
    SynthesisConfig,
    TrainingConfig,
)
from cdp.base.errors import ConfigError
from cdp.base.settings import Config
from cdp.base.workspace import Workspace
from cdp.jobs import load_spec, resolve_job
from cdp.services import benchmarks, evaluation, metrics, queries, search, studies, training
from cdp.services.queries import filtering
from cdp.services.sharing import access, stored
from cdp.services.studies import StudyConfig

CONFIGS: dict[str, type[Config]] = {
    "synthesis": SynthesisConfig,
    "metrics": MetricsConfig,
    "training": TrainingConfig,
    "evaluation": EvaluationConfig,
    "study": StudyConfig,
    "download": DownloadConfig,
    "round-trip": RoundTripConfig,
    "filter": FilterConfig,
    "index": IndexConfig,
}
"""The kinds of job that can be started again, and what their settings are made of."""


def settings(
    workspace: Workspace, job: str, changes: Mapping[str, Any] | None = None, allow: Sequence[str] = ()
) -> Config:
    """Return the configuration of a job with some fields changed.

    ConfigError for a kind or a field that there is not, NotAllowedError where a setting that is not changed names
    something outside the workspace that ``allow`` does not hold.
    """
    spec = load_spec(workspace, resolve_job(workspace, job))
    kind = CONFIGS.get(spec.kind)
    if kind is None:
        raise ConfigError(f"A job of kind {spec.kind!r} cannot be started again.")
    stored.check(workspace, spec, allow, named=frozenset(changes or ()))
    config_values = {name: value for name, value in spec.config.items() if name in kind.settings()}
    return kind.from_dict({**config_values, **(changes or {})})


def prefill(workspace: Workspace, job: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return a job's settings for a form, and those left out of it because they lead out of the workspace."""
    spec = load_spec(workspace, resolve_job(workspace, job))
    left_out = stored.outside(workspace, spec)
    names = CONFIGS[spec.kind].settings().keys() - left_out.keys() if spec.kind in CONFIGS else set()
    return {name: value for name, value in spec.config.items() if name in names}, left_out


@access.runs
def start(
    workspace: Workspace,
    job: str,
    changes: Mapping[str, Any] | None = None,
    *,
    api_key: str = "",
    allow_incomplete: bool = False,
    allow_leakage: bool = False,
    allow: Sequence[str] = (),
) -> str:
    """Submit a job like ``job`` with some settings changed; the new job's id.

    ``allow_incomplete`` says yes to training on query sets that are not whole, ``allow_leakage`` to training on what
    a benchmark judges.
    """
    config = settings(workspace, job, changes, allow)
    if isinstance(config, SynthesisConfig):
        return queries.generate(workspace, config, api_key=api_key)
    if isinstance(config, MetricsConfig):
        return metrics.start(workspace, config)
    if isinstance(config, TrainingConfig):
        return training.start(workspace, config, allow_incomplete=allow_incomplete, allow_leakage=allow_leakage).job_id
    if isinstance(config, EvaluationConfig):
        return evaluation.start(workspace, config)
    if isinstance(config, DownloadConfig):
        return benchmarks.start_download(workspace, config)
    if isinstance(config, RoundTripConfig):
        return filtering.start_round_trip(workspace, config.query_set, config.by, gpus=config.gpus)
    if isinstance(config, FilterConfig):
        return filtering.start_filter(workspace, config)
    if isinstance(config, IndexConfig):
        return search.start_index(workspace, config)
    assert isinstance(config, StudyConfig)
    return studies.run(
        workspace, config, api_key=api_key, allow_incomplete=allow_incomplete, allow_leakage=allow_leakage
    ).job_id
