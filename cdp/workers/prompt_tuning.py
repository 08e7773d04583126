"""The job that chooses a prompt (Algorithm 1): measures what each candidate wrote against the target, ``prompts.json``.

    python -m cdp.workers.prompt_tuning <job folder>

The candidates in the job's inputs name the synthesis jobs that wrote their queries; this job waits for those. It writes
``results/prompts.json``: ``candidates`` with their measures, the choice first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import MetricsConfig, PromptTuningConfig
from cdp.base.errors import InputError
from cdp.base.job_kind import CORPUS, QUERY_SET, JobKind
from cdp.base.worker import Job
from cdp.base.workspace import now
from cdp.metrics.query_set import MetricValue, quick
from cdp.metrics.scorers import load_scorer
from cdp.synthesis.candidates import Tried, choose
from cdp.workers.metrics import lazy_encoder, measure, scorer_facts, select


def main(job: Job) -> None:
    """Measure the candidates and choose one."""
    config = PromptTuningConfig.from_dict(job.config)
    job.loading("the scorer")

    scorer = load_scorer(config.scoring.scorer, job.workspace, batch_size=config.scoring.batch_size)
    people = None
    if config.scoring.human:
        people = query_sets.load(job.workspace, config.scoring.human)

    written = {q.job_id: q for q in query_sets.list_query_sets(job.workspace) if not q.parameters.get("made_from")}
    tried: list[Tried] = []
    records: list[dict[str, Any]] = []
    for candidate in job.spec["inputs"]["candidates"]:
        query_set = written.get(candidate["job"])
        if query_set is None:
            raise InputError(f"The queries of {candidate['name']} were not written.", hint="See the job that does.")

        settings = MetricsConfig(query_set=query_set.id, scoring=config.scoring)
        documents, human, sampled_from, _ = select(job, settings)
        values, ratios = measure(
            job, settings, documents, human, scorer, lazy_encoder(job, settings), name=candidate["name"],
            sampled_from=sampled_from,
        )  # fmt: skip

        kept = quick(job.workspace, query_set, human=people, failures=job.failures(f"measuring {candidate['name']}"))
        values += kept.measures
        self_bleu = np.array(list(map(kept.documents.get, documents)), dtype=np.float64)
        found = Tried.of(
            candidate["name"], ratios, self_bleu, config.target, quality=_quality(values), seed=config.scoring.seed
        )
        record = {**candidate, "query_set": query_set.id, "measures": [asdict(value) for value in values], "error": ""}

        if found is None:
            record["error"] = "It wrote two queries for no document, so CE and Self-BLEU are undefined."
        else:
            tried.append(found)
            record |= asdict(found)

        records.append(record)

    if not tried:
        raise InputError(f"No candidate could be measured. {records[0]['error']}")

    name, why = choose(tried, config.target, ce=scorer.measure.title)
    rank = {t.name: t.rank for t in tried}
    records.sort(key=lambda record: (record["name"] not in rank, rank.get(record["name"], ())))
    facts = {"config": config.to_dict(), "scorer": scorer_facts(scorer), "created": now(), "choice": name, "why": why}
    job.result("prompts", {**facts, "candidates": records})
    job.progress("done", len(records), len(records), "prompts")


def _quality(values: Iterable[MetricValue]) -> float | None:
    """The mean of Dist-Sim and Len-Sim, as far as they were measured; None without either."""
    known = []
    for measured in values:
        if measured.name in ("dist_sim", "len_sim") and measured.value is not None:
            known.append(measured.value)

    return sum(known) / len(known) if known else None


KIND = JobKind(
    "prompts", "Tuning prompts", "The prompt whose queries come nearest to a target, chosen on a sample.",
    PromptTuningConfig, main, called="Prompts for {corpus} ({config.target})",
    inputs={"corpus": CORPUS, "human": QUERY_SET}, makes="prompt", asks=False, command="prompts tune", repeats=False,
    order=60,
)  # fmt: skip


if __name__ == "__main__":
    worker.run(main)
