"""The worker that writes queries, then measures them: ``python -m cdp.workers.synthesis <job folder>``.

The API key comes from ``CDP_API_KEY`` or ``OPENAI_API_KEY``, never from the job's files.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from cdp import query_sets
from cdp.base import worker
from cdp.base.errors import CdpError
from cdp.base.failures import describe, is_fatal
from cdp.base.worker import Job, Stopped
from cdp.metrics.query_set import quick
from cdp.synthesis.ranking import label_corpus
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
    """Measure Self-BLEU and content words of the new set, for the pages."""
    if not result["complete"] or not result["n_queries"]:
        return

    query_set = query_sets.load(job.workspace, result["query_set"])
    watch = partial(job.advance, unit="documents")
    try:
        quick(job.workspace, query_set, watch=watch, failures=job.failures("measuring"))
    except Stopped:
        return  # the set itself is complete
    except Exception as error:
        if is_fatal(error) and not isinstance(error, CdpError):
            raise
        print(f"The set could not be measured: {describe(error)}", flush=True)


if __name__ == "__main__":
    worker.run(main)
