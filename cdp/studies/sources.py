"""What is trained on: query sets that are there, or that a job is to write first."""

from __future__ import annotations

from dataclasses import replace

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.failures import Failures
from cdp.base.workspace import Workspace
from cdp.studies.config import StudyConfig
from cdp.studies.plan import Condition, StudySource, needs_reasoning
from cdp.training.draws import drawn_rows
from cdp.training.pairs import PairSet, load_pairs
from cdp.training.reasoning import with_reasoned
from cdp.training.settings import order_of


def written(workspace: Workspace, source: StudySource) -> StudySource:
    """A source whose query set is there, found by the job that wrote it if need be, with the counts of its queries."""
    if source.filter and not source.query_set:
        made = query_sets.find_filtered(workspace, query_sets.load(workspace, source.made_from), source.filter)
        if made is None:
            raise ConfigError(f"{source.label} was not made.", hint=f"See the job that makes it: {source.job_id}.")
        source = replace(source, query_set=made.id)
    elif not source.query_set:
        listed = query_sets.list_query_sets(workspace)
        # A copy with fewer queries names the job too: it is not what the job wrote.
        sets = [q for q in listed if q.job_id == source.job_id and not q.parameters.get("made_from")]
        if not sets:
            raise ConfigError(f"The queries of {source.label} were not written.", hint="See the job that writes them.")
        source = replace(source, query_set=sets[0].id)
    return counted(workspace, source)


def counted(workspace: Workspace, source: StudySource) -> StudySource:
    """The source with how many documents have at least 1, 2, 3 … queries."""
    counts: list[int] = []
    for line in query_sets.iter_lines(workspace, source.query_set):
        n = len(line["queries"])
        counts += [0] * (n - len(counts))
        for i in range(n):
            counts[i] += 1
    query_set = query_sets.load(workspace, source.query_set)
    return replace(
        source,
        n_documents=counts[0] if counts else 0,
        counts=tuple(counts),
        language=query_set.language,
        corpus=query_set.corpus_id,
        written_by=query_set.written_by,
    )


def condition_pairs(
    workspace: Workspace,
    config: StudyConfig,
    source: StudySource,
    condition: Condition,
    failures: Failures | None = None,
) -> PairSet:
    """The pairs that a condition trains on: those that ``train`` takes where all documents take part, else a draw.

    Where the condition is weighted by RI they have their reasoned forms. Raises as ``load_pairs`` and
    ``with_reasoned`` do, and InputError where the set cannot meet the budget.
    """
    pairs = _pairs(workspace, config, source, condition, failures)
    if not needs_reasoning(condition.weighting):
        return pairs
    return with_reasoned(pairs, workspace, source.reasoning)


def _pairs(
    workspace: Workspace, config: StudyConfig, source: StudySource, condition: Condition, failures: Failures | None
) -> PairSet:
    if condition.budget is None and condition.max_documents is None:
        return load_pairs(workspace, source.query_set, per_doc=condition.per_doc, failures=failures)
    whole = load_pairs(workspace, source.query_set, failures=failures)
    rows = drawn_rows(
        whole.document_of,
        condition.seed,
        per_doc=condition.per_doc,
        documents=config.max_documents,
        budget=condition.budget,
        widest=max(config.numbers("per_doc", minimum=1)),
    )
    drawn = whole.part(rows)
    drawn.check()
    return drawn


def equal_steps(
    workspace: Workspace, config: StudyConfig, source: StudySource, condition: Condition, settings: TrainingConfig
) -> int | None:
    """The steps of the highest Q/Doc, for which every condition of the design ``equal steps`` trains; else None."""
    if config.held_equal != "equal steps":
        return None
    widest = replace(condition, per_doc=max(config.numbers("per_doc", minimum=1)))
    return order_of(settings, len(condition_pairs(workspace, config, source, widest))).steps


def corpus_of(workspace: Workspace, source: StudySource) -> str:
    """The id of the corpus that a source's queries were written for."""
    return query_sets.load(workspace, source.query_set).corpus_id
