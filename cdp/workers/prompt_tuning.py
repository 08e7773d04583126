"""The job that chooses a prompt (Algorithm 1): write, measure, hold against the target, for each candidate.

    python -m cdp.workers.prompt_tuning <job folder>

Settings are ``PromptTuningConfig``; prompts of the user's own stand in the job's inputs, as they were when it was
submitted. What it writes:

``results/prompts.json``        ``candidates`` with measures, cost and distance, the nearest first; ``choice``
``checkpoints/<name>.jsonl``    a candidate's queries as they come: a stopped or failed job goes on where it was

A candidate that cannot be tried (a generator that has no answer for it, say) is reported as such; the job fails only
if none could be measured. An API key comes from ``CDP_API_KEY`` or ``OPENAI_API_KEY``, as for synthesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import PromptTuningConfig
from cdp.base.errors import CdpError, ConfigError, InputError, ProviderError
from cdp.base.records import Document
from cdp.base.worker import Job, Stopped
from cdp.base.workspace import now
from cdp.corpus import load_manifest
from cdp.llm.answers import Usage
from cdp.llm.cache import AnswerCache
from cdp.llm.prices import price_of
from cdp.metrics.query_set import DOCUMENT
from cdp.metrics.report import Selection
from cdp.metrics.scorers import PairScorer, load_scorer
from cdp.studies.prompts import (
    PromptCandidate,
    Tried,
    WrittenQueries,
    candidates_of,
    choose,
    sample_documents,
    standing,
    tokens_per_document,
    write,
)
from cdp.synthesis.generators import Generator, make_generator
from cdp.workers.metrics import lazy_encoder, measure, scorer_facts

EXAMPLES = 3  # documents whose queries by each candidate are kept in the result


def main(job: Job) -> None:
    """Try the candidates and choose one."""
    config = PromptTuningConfig.from_dict(job.config)
    candidates = candidates_of(config, job.spec.get("inputs", {}).get("prompts", {}))
    job.loading("the documents")
    documents, n_corpus = sample_documents(job.workspace, config)
    written: list[tuple[PromptCandidate, WrittenQueries | CdpError, Generator | None]] = []
    with AnswerCache(job.workspace) as cache:
        for candidate in candidates:
            source = None
            try:
                source = make_generator(config.synthesis(candidate.method.name, candidate.prompt))
                source.prepare()
                wrote = write(job, candidate, documents, config, source, cache)
            except (ConfigError, ProviderError):
                raise
            except CdpError as error:
                written.append((candidate, error, source))
                continue
            if wrote is None:
                raise Stopped
            written.append((candidate, wrote, source))
    job.loading("the scorer")
    bench = Bench(job, config, documents, n_corpus)
    tried: list[Tried] = []
    records: list[dict[str, Any]] = []
    for candidate, outcome, source in written:
        job.advance(f"measuring {candidate.name}", 0, 0)
        record = {
            "name": candidate.name,
            "title": candidate.method.title if not candidate.prompt else candidate.name,
            "method": candidate.method.name,
            "prompt": candidate.prompt,
            "prompt_hash": candidate.method.prompt_hash,
            "error": "",
        }
        if isinstance(outcome, CdpError):
            records.append({**record, "error": str(outcome)})
            continue
        measured, candidate_tried = bench.measure(candidate, outcome, source)
        records.append({**record, **measured})
        if candidate_tried is not None:
            tried.append(candidate_tried)
    if not tried:
        raise InputError(f"No candidate could be measured. {records[0]['error']}")
    chosen = choose(tried, config.target, ce=bench.scorer.measure.title)
    far = {candidate.name: candidate.distance for candidate in tried}
    records.sort(key=lambda r: (r["name"] != chosen.name, far.get(r["name"], np.inf)))
    job.result(
        "prompts",
        {
            "corpus": config.corpus,
            "config": config.to_dict(),
            "target": config.target,
            "created": now(),
            "language": bench.language,
            "n_documents": len(documents),
            "n_corpus": n_corpus,
            "scorer": scorer_facts(bench.scorer),
            "candidates": records,
            "choice": asdict(chosen),
        },
    )
    job.progress("done", len(documents), len(documents), "documents")


class Bench:
    """The models and human queries that every candidate is measured with."""

    def __init__(self, job: Job, config: PromptTuningConfig, documents: Sequence[Document], n_corpus: int) -> None:
        self.job, self.config, self.documents, self.n_corpus = job, config, documents, n_corpus
        language = load_manifest(job.workspace, config.corpus).main_language
        self.language = "en" if language == "unknown" else language
        self.scorer: PairScorer = load_scorer(config.scorer, job.workspace, batch_size=config.batch_size)
        self.encode = lazy_encoder(job, config)
        self.human: dict[str, list[str]] | None = None
        if config.human:
            wanted = {document.id for document in documents}
            reference = query_sets.read_queries(job.workspace, config.human)
            self.human = {
                line.document_id: line.queries for line in reference if line.document_id in wanted and line.queries
            }
            if not self.human:
                raise InputError("The human queries are for none of the sampled documents.", hint="Draw more of them.")

    def measure(
        self, candidate: PromptCandidate, wrote: WrittenQueries, source: Generator | None
    ) -> tuple[dict[str, Any], Tried | None]:
        """Return a candidate's record and its measures for the choice, None if it cannot be chosen."""
        ids = [document.id for document in self.documents if document.id in wrote.queries]
        queries = [wrote.queries[name] for name in ids]
        record: dict[str, Any] = {
            "n_documents": len(ids),
            "n_queries": sum(map(len, queries)),
            "failures": wrote.n_failures,
            "incomplete": wrote.n_incomplete,
            **self._cost(candidate, wrote, source),
        }
        if not ids:
            return {**record, "error": wrote.first_failure}, None
        sampled_from = self.n_corpus if self.n_corpus > len(self.documents) else None
        selection = Selection(ids, queries, self.human, self.language, sampled_from)
        measured = measure(self.job, self.config, selection, self.scorer, self.encode, name=candidate.name)
        most = measured.selection.most
        values = [v for v in (*measured.values, *measured.quick) if v.scope == DOCUMENT and v.per_doc == most]
        record |= {
            "measures": [asdict(value) for value in values],
            "examples": [{"document_id": n, "queries": q} for n, q in zip(ids, queries, strict=True)][:EXAMPLES],
        }
        position = standing(
            measured.columns[self.scorer.measure.name], measured.columns["self_bleu"], self.config.target,
            seed=self.config.seed,
        )  # fmt: skip
        if position is None:
            return {**record, "error": "It wrote two queries for no document, so CE and Self-BLEU are undefined."}, None
        by_name = {value.name: value.value for value in values}
        qualities = [v for name in ("dist_sim", "len_sim") if (v := by_name.get(name)) is not None]
        tokens = record["tokens"]["input"] + record["tokens"]["output"]
        candidate_tried = Tried(
            name=candidate.name,
            standing=position,
            ce=by_name[self.scorer.measure.name] or 0.0,
            self_bleu=by_name["self_bleu"] or 0.0,
            quality=sum(qualities) / len(qualities) if qualities else None,
            tokens=tokens,
        )
        return {**record, **asdict(position), "interval": list(position.interval)}, candidate_tried

    def _cost(self, candidate: PromptCandidate, wrote: WrittenQueries, source: Generator | None) -> dict[str, Any]:
        """Tokens of a document, and what the whole corpus would cost with this prompt where the model has a price."""
        prompt, answer = tokens_per_document(candidate, self.documents, wrote, self.config)
        price = price_of(self.job.workspace, source.model) if source is not None and source.is_llm else None
        whole = Usage(round(prompt * self.n_corpus), round(answer * self.n_corpus))
        return {
            "tokens": {"input": round(prompt, 1), "output": round(answer, 1)},
            "usage": wrote.usage.to_dict(),
            "model": source.model if source is not None else "",
            "paid": price.cost(wrote.usage) if price else None,
            "corpus_cost": price.cost(whole) if price else None,
            "price_as_of": price.as_of if price else None,
        }


if __name__ == "__main__":
    worker.run(main)
