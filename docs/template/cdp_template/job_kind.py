"""A kind of job: main runs as python -m cdp_template.job_kind JOB_FOLDER, in the background. See cdp.base.job_kind."""

from cdp import query_sets
from cdp.base.job_kind import QUERY_SET, JobKind
from cdp.base.settings import REQUIRED, Config, option
from cdp.base.worker import Job, run


class LengthConfig(Config):
    """Counting the words of queries."""

    query_set: str = option(REQUIRED, "The query set (its id).")
    at_least: int = option(1, "Count only queries of so many words.", reason="Counts all.", unit="words", minimum=1)


def main(job: Job) -> None:
    config = LengthConfig.from_dict(job.config)
    query_set = query_sets.load(job.workspace, config.query_set)
    lengths: list[int] = []
    for done, line in enumerate(query_sets.read_queries(job.workspace, query_set.id), 1):
        words = [len(query.split()) for query in line.queries]
        lengths += [n for n in words if n >= config.at_least]
        # Ends the job here after a request to stop; what is reported is its progress on pages and in the terminal.
        job.advance("counting", done, query_set.n_documents, "documents")

    mean = sum(lengths) / len(lengths) if lengths else 0.0
    job.result("lengths", {"n_queries": len(lengths), "words": round(mean, 2)})
    print(f"{len(lengths)} queries of {mean:.1f} words on average", flush=True)


KIND = JobKind(
    "lengths",
    "Counting words",
    "How many words the queries of a set have.",
    LengthConfig,
    main,
    inputs={"query_set": QUERY_SET},
    makes="figures",
)

if __name__ == "__main__":
    run(main)
