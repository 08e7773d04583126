"""What ``cdp demo`` adds: documents, recorded queries of both kinds, its benchmark, its project, its recorded test.

The test was run once, by ``make demo-results``, and is kept as one compressed file of what its job left: the
specification, the scores of every training, and the winner's settings. Loading it writes the same files again, so the
catalogue and the pages read it as they read every study.
"""

from __future__ import annotations

import gzip
from typing import Any

from cdp import benchmarks, query_sets
from cdp.base.errors import WorkspaceError
from cdp.base.locks import staging
from cdp.base.workspace import SHIPPED_DATA, Workspace, parse_json, read_jsonl, write_json
from cdp.services import access, corpora, projects
from cdp.studies.config import TrialConfig
from cdp.synthesis.generators.recorded import NOT_RECORDED
from cdp.synthesis.methods import METHODS

FOLDER = SHIPPED_DATA / "demo"
NAME = "demo"

# The recorded test: its file, its id in a workspace, and how it was started.
RESULTS = FOLDER / "test.json.gz"
TEST = "study-demo-recorded"
CONFIG = TrialConfig(corpus=NAME).replace(generator="recorded", retriever="static-minilm", minutes=240.0)


@access.writes
def load(workspace: Workspace, *, tested: bool = True) -> list[str]:
    """Add what the workspace lacks of the demo, with its recorded test where ``tested``; return a sentence on each
    addition."""
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

    if tested and not workspace.job(TEST).exists() and _add_test(workspace):
        done.append(f"recorded test {TEST}")

    return done


def _add_test(workspace: Workspace) -> bool:
    """Write the files of the recorded test; False where the workspace's benchmark or queries are others than its."""
    if not RESULTS.is_file():
        return False
    files: dict[str, Any] = parse_json(gzip.decompress(RESULTS.read_bytes()))
    about = files["results/about.json"]
    known = {info.name: info.content_hash for info in benchmarks.list_benchmarks(workspace)}
    if any(known.get(b["name"]) != b["hash"] for b in about["benchmarks"]):
        return False
    if not all(query_sets.exists(workspace, source["query_set"]) for source in about["sources"]):
        return False

    with staging(workspace.jobs) as hidden:
        for name, value in files.items():
            write_json(hidden / TEST / name, value)
        try:
            (hidden / TEST).rename(workspace.job(TEST))
        except OSError as error:
            if workspace.job(TEST).exists():  # another process was first
                return False
            raise WorkspaceError.refused(workspace.job(TEST), "made", error) from error
    return True


def corpus(workspace: Workspace) -> str:
    """Return the id of the demo's corpus; empty if it is not loaded."""
    return next((manifest.id for manifest in corpora.list_corpora(workspace) if manifest.name == NAME), "")
