"""What anybody can see in a workspace: the same before and after an upgrade."""

from __future__ import annotations

from typing import Any

from cdp import catalog, jobs, query_sets
from cdp.base.workspace import Workspace
from cdp.corpus import iter_documents
from cdp.services import benchmarks, corpora, metrics, queries, results, studies


def facts_of(workspace: Workspace) -> dict[str, Any]:
    """Corpora, query sets with what was measured, benchmarks, jobs, results per query, trained models, studies."""
    return {
        "corpora": {
            manifest.id: [manifest.n_documents, *(d.text for d in iter_documents(workspace, manifest.id, limit=3))]
            for manifest in corpora.list_corpora(workspace)
        },
        "query_sets": {
            query_set.id: {
                "name": query_set.name,
                "n": query_set.n_queries,
                "complete": query_set.complete,
                "first": next(iter(query_sets.iter_lines(workspace, query_set.id)))["queries"],
                "measures": {m["name"]: m["value"] for m in metrics.quick(workspace, query_set.id).measures},
                "model_measures": [
                    {m["name"]: m["value"] for m in row["measures"]} for row in metrics.results(workspace, query_set.id)
                ],
            }
            for query_set in queries.list_query_sets(workspace)
        },
        "benchmarks": [info.name for info in benchmarks.list_benchmarks(workspace)],
        "jobs": {
            job.id: {
                "kind": job.kind,
                "name": job.name,
                "state": str(job.state),
                "model": job.kind == "training" and job.has_model,
                "steps": len(jobs.read_metrics(workspace, job.id)),
            }
            for job in jobs.list_jobs(workspace)
        },
        "results": {row["id"]: row["ndcg@10"] for row in results.list_results(workspace)},
        "scores": {
            job_id: dict(sorted(scores.items()))
            for job_id, scores in catalog.per_query(
                workspace, [row["id"] for row in catalog.evaluations(workspace)]
            ).items()
        },
        "trainings": [row["id"] for row in catalog.trainings(workspace)],
        "studies": {
            view.id: [report.planned, report.finished, sorted(round(row.average or 0.0, 6) for row in report.rows)]
            for view in studies.list_studies(workspace)
            for report in [studies.report(workspace, view.id)]
        },
    }  # fmt: skip
