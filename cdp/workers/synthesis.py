"""The worker that writes queries, then measures them: ``python -m cdp.workers.synthesis <job folder>``.

The API key comes from ``CDP_API_KEY`` or ``OPENAI_API_KEY``, never from the job's files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from cdp import query_sets
from cdp.base import worker
from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError
from cdp.base.failures import describe, is_fatal
from cdp.base.job_kind import CORPUS, LIGHT, QUERY_SET, Device, JobKind, PreparedJob
from cdp.base.text import counted
from cdp.base.worker import Job, Stopped
from cdp.base.workspace import Workspace
from cdp.corpus import load_manifest
from cdp.llm.address import NO_KEY
from cdp.metrics.query_set import quick
from cdp.query_sets.nonsense import REASONS, query_table
from cdp.synthesis.generators import GENERATORS, make_generator
from cdp.synthesis.methods import method_of
from cdp.synthesis.pricing import estimate
from cdp.synthesis.ranking import label_corpus, teachers_of
from cdp.synthesis.run import SynthesisRun


def main(job: Job) -> None:
    result = label_corpus(job) if job.config.get("method") == "dragon_s_faithful" else SynthesisRun(job).execute()
    print(
        f"{result['n_queries']} queries for {result['n_documents']} documents, {result['failures']} failed, "
        f"{result['seconds']:.1f} s: {result['query_set']}",
        flush=True,
    )
    measure(job, result)


def measure(job: Job, result: dict[str, Any]) -> None:
    """Measure Self-BLEU and content words of the new set, for the pages, and say what in it is no query."""
    if not result["complete"] or not result["n_queries"]:
        return

    query_set = query_sets.load(job.workspace, result["query_set"])
    watch = partial(job.advance, unit="documents")
    try:
        quick(job.workspace, query_set, watch=watch, failures=job.failures("measuring"))
        flagged = Counter(query_table(job.workspace, query_set).reasons)
    except Stopped:
        return  # the set itself is complete
    except Exception as error:
        if is_fatal(error) and not isinstance(error, CdpError):
            raise
        print(f"The set could not be measured: {describe(error)}", flush=True)
        return

    flagged.pop("", None)
    if flagged:
        each = "; ".join(f"{REASONS[name]} {n:,}" for name, n in flagged.items())
        share = f"{flagged.total():,} of {counted(query_set.n_queries, 'query', 'queries')}"
        note = (
            f"{share} cannot be used: {each}. Read them under Queries, Review; queries filter --usable leaves them out."
        )
        job.result("synthesis", {**result, "notes": [*result.get("notes", ()), note]})


def prepare(workspace: Workspace, config: SynthesisConfig, after: Sequence[str] = ()) -> PreparedJob:
    """Check method, ranking and generator; what an LLM is expected to cost is kept, to be compared with the actual."""
    corpus, method = load_manifest(workspace, config.corpus), method_of(config)
    if method.generator == "ranking":
        teachers_of(config)
    make_generator(config, api_key=NO_KEY)

    inputs: dict[str, Any] = {"prompt_hash": method.prompt_hash}
    if GENERATORS[config.endpoint.generator].is_llm:
        expected = estimate(workspace, config)
        facts = ("requests", "input_tokens", "output_tokens", "cost")
        inputs["estimate"] = {name: getattr(expected, name) for name in facts}

    return PreparedJob(config, config.name or f"{corpus.name} {method.name} {config.per_doc}", inputs)


def device(config: SynthesisConfig) -> Device:
    """Return a device for what is loaded here: a local model, or retrievers that rank."""
    return Device(config.gpus) if method_of(config).generator or config.endpoint.local else LIGHT


KIND = JobKind(
    "synthesis", "Writing queries", "Queries for the documents of a corpus, by a method and a generator.",
    SynthesisConfig, main, prepare, inputs={"corpus": CORPUS, "source": QUERY_SET}, device=device, makes=QUERY_SET,
    command="queries generate", retries=True, order=10,
)  # fmt: skip


if __name__ == "__main__":
    worker.run(main)
