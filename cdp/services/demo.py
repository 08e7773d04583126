"""What ``cdp demo`` adds: documents, recorded queries of both kinds, its benchmark, its project."""

from __future__ import annotations

from cdp import benchmarks, query_sets
from cdp.base.workspace import SHIPPED_DATA, Workspace, read_jsonl
from cdp.services import access, corpora, projects
from cdp.synthesis.generators.recorded import NOT_RECORDED
from cdp.synthesis.methods import METHODS

FOLDER = SHIPPED_DATA / "demo"
NAME = "demo"


@access.writes
def load(workspace: Workspace) -> list[str]:
    """Add what the workspace lacks of the demo; return a sentence on each addition."""
    done: list[str] = []
    added = corpora.add(workspace, FOLDER, name=NAME)
    if not added.existed:
        done.append(f"corpus {added.corpus.id} ({added.corpus.n_documents} documents)")
    existing_names = {q.name for q in query_sets.list_query_sets(workspace) if q.corpus_id == added.corpus.id}
    for method in ("diverse", "paraphrase"):
        name = f"{NAME} {method}"
        if name in existing_names:
            continue
        records = list(read_jsonl(FOLDER / "generations" / f"{method}.jsonl"))
        recorded = [(record["document_id"], record["queries"]) for record in records]
        imported = query_sets.import_queries(
            recorded, workspace, added.corpus.id, name, kind="synthetic", method=method, language="en"
        )
        query_set = query_sets.update(
            workspace,
            imported.query_set.id,
            generator="recorded",
            model=NOT_RECORDED,
            prompt_hash=METHODS[method].prompt_hash,
        )
        done.append(f"query set {query_set.id} ({query_set.n_queries} {method} queries)")
    if NAME not in {info.name for info in benchmarks.list_benchmarks(workspace)}:
        benchmarks.add_benchmark(FOLDER, workspace, NAME)
        done.append(f"benchmark {NAME}")
    if all(project.implied for project in projects.projects_of(workspace, "corpus", added.corpus.id)):
        name = projects.free_name(workspace, NAME)
        project = projects.create(workspace, name, corpora=[added.corpus.id], benchmarks=[NAME])
        done.append(f"project {project.id}")
    return done


def corpus(workspace: Workspace) -> str:
    """Return the id of the demo's corpus; empty if it is not loaded."""
    return next((manifest.id for manifest in corpora.list_corpora(workspace) if manifest.name == NAME), "")
