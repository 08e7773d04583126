"""Round-trip ranks of a query set, and sets without the queries that fail a test: what starts and reads the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from cdp import jobs, query_sets
from cdp.base.config import BM25, FilterConfig, MiningConfig, RoundTripConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.evaluation import bm25
from cdp.jobs import DeviceRequest, JobView
from cdp.query_sets import QuerySet, measured
from cdp.query_sets.measured import QueryScores
from cdp.retrievers import resolve
from cdp.services import completeness
from cdp.services.jobs import devices
from cdp.services.sharing import access

RANK_WORKER, RANK_KIND = "cdp.workers.round_trip", "round-trip"
MINING_WORKER, MINING_KIND = "cdp.workers.mining", "mining"
FILTER_WORKER, FILTER_KIND = "cdp.workers.filtering", "filter"


@access.runs
def start_round_trip(workspace: Workspace, query_set: str, by: str = BM25, *, gpus: int | None = None) -> str:
    """Measure at which rank each query finds its document; the job's id, that of one at work on it where there is one.

    ``by`` is bm25, bm25:<language> or a retriever. NotFoundError for a set or model that there is not.
    """
    named = query_sets.resolve_query_set(workspace, query_set)
    values = {"query_set": named.id, "by": by, "gpus": gpus}
    config = access.checked(workspace, RoundTripConfig.from_dict(values))
    _check_model(workspace, config.by)
    running = measuring(workspace, named.id, config.by)
    if running is not None and running.active:
        return running.id
    return jobs.submit(
        workspace,
        kind=RANK_KIND,
        name=f"Round trip of {named.name} by {config.by}",
        module=RANK_WORKER,
        config=config.to_dict(),
        inputs={"query_set": named.id, "query_set_hash": query_sets.state(workspace, named)},
        device=_device(workspace, config.by, config.gpus),
    )


def measuring(workspace: Workspace, query_set: str, by: str) -> JobView | None:
    """The newest job that was started to measure the ranks of this set by this; None if there was none."""
    views = jobs.list_jobs(workspace, [RANK_KIND])
    wanted = (query_set, by)
    return next((v for v in views if (v.config.get("query_set"), v.config.get("by")) == wanted), None)


def round_trips(workspace: Workspace, query_set: QuerySet) -> dict[str, QueryScores]:
    """The round-trip ranks of the set as it is now, by what looked for the documents, BM25 first, then the newest."""
    scores = measured.list_scores(workspace, query_set, measured.ROUND_TRIP)
    by = {item.by: item for item in scores}
    return {name: by[name] for name in sorted(by, key=lambda name: name != BM25)}


def made_from(workspace: Workspace, query_set: QuerySet) -> list[QuerySet]:
    """The sets that were made from this one, the newest first."""
    return [q for q in query_sets.list_query_sets(workspace) if q.parameters.get("made_from") == query_set.id]


@access.runs
def start_filter(workspace: Workspace, config: FilterConfig, *, after: Sequence[str] = ()) -> str:
    """Make a set without the queries that fail the filter's tests; the job's id.

    ``after`` are jobs that write the set first; else ConfigError for one that is not whole.
    """
    name = config.query_set
    if not after:
        named = _whole(workspace, name, "A filter takes whole sets.")
        config, name = config.replace(query_set=named.id), named.name
    config = checked(workspace, config)
    return jobs.submit(
        workspace,
        kind=FILTER_KIND,
        name=f"Filter {name}: {config.text}",
        module=FILTER_WORKER,
        config=config.to_dict(),
        inputs={"query_set": config.query_set},
        device=_device(workspace, "" if config.cross_encoder else config.by, config.gpus),
        after=after,
    )


@access.runs
def start_mining(workspace: Workspace, config: MiningConfig) -> str:
    """Make a copy of a set that names hard negatives for its queries; the job's id.

    ConfigError for a set that is not whole, or a model that does not fit its role.
    """
    named = _whole(workspace, config.query_set, "Hard negatives are mined for whole sets.")
    if find_spec("datasets") is None:
        raise ConfigError("Mining hard negatives needs datasets, which is not installed.", hint="pip install datasets")
    config = config.replace(query_set=named.id)
    resolve(access.model(workspace, config.retriever), workspace)
    if config.cross_encoder:
        _check_cross_encoder(workspace, config.cross_encoder)
    return jobs.submit(
        workspace,
        kind=MINING_KIND,
        name=f"Hard negatives for {named.name}",
        module=MINING_WORKER,
        config=config.to_dict(),
        inputs={"query_set": named.id},
        device=_device(workspace, config.retriever, config.gpus),
    )


def checked(workspace: Workspace, config: FilterConfig) -> FilterConfig:
    """The filter, whose models are there and may be used. NotFoundError or ConfigError where they are not."""
    config = access.checked(workspace, config)
    if config.round_trip_rank is not None:
        _check_model(workspace, config.by)
    if config.cross_encoder:
        _check_cross_encoder(workspace, config.cross_encoder)
    return config


def _whole(workspace: Workspace, name: str, why: str) -> QuerySet:
    """The query set of this id or name; ConfigError with ``why`` unless it is whole."""
    query_set = query_sets.resolve_query_set(workspace, name)
    lacking = completeness.check(workspace, query_set)
    if not lacking.complete:
        raise ConfigError(f"{lacking.sentence} {why}", hint=lacking.next_step)
    return query_set


def _check_cross_encoder(workspace: Workspace, name: str) -> None:
    """NotFoundError, or ConfigError for a model of single texts."""
    access.model(workspace, name)
    if resolve(name, workspace).origin in ("preset", "job"):
        raise ConfigError(
            f"{name} embeds single texts; what is needed is a model that scores pairs.",
            hint="Name a cross-encoder, such as cross-encoder/ms-marco-MiniLM-L6-v2.",
        )


def _check_model(workspace: Workspace, by: str) -> None:
    """NotFoundError or ConfigError for what cannot look for documents."""
    language = bm25.language_in(by)
    if language is None:
        resolve(access.model(workspace, by), workspace)
    else:
        bm25.check_language(language)


def _device(workspace: Workspace, by: str, gpus: int | None) -> DeviceRequest:
    """BM25 keeps no device busy for long; a model takes a GPU where there is one."""
    lexical = bm25.language_in(by) is not None
    return DeviceRequest.light() if lexical else devices.request(workspace, gpus, at_most=1)
