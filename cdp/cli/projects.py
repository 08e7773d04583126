"""Commands on projects and corpora: import, lists, members."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

from cdp.base.errors import SHOWN_PROBLEMS
from cdp.base.text import counted
from cdp.cli import answers
from cdp.cli.answers import Run, warn
from cdp.cli.declare import Id, Name, Reads, command
from cdp.corpus import CorpusManifest, ReadOptions, looking
from cdp.query_sets.given import AddOptions
from cdp.services import adding, corpora, jobs, projects
from cdp.services.adding import Added

# Passwords of documents, one a line; unlike an option it is not shown among the processes.
PASSWORDS = "CDP_PDF_PASSWORDS"
Password = Annotated[str, f"the PDFs' password, never stored; {PASSWORDS} holds any number, one a line"]


def _passwords(given: str) -> list[str]:
    return [*filter(None, [given]), *os.environ.get(PASSWORDS, "").splitlines()]


@command("projects add")
def add(
    run: Run,
    path: Annotated[str, Reads(), "documents: a file, a zip or a folder; or documents, queries and judgments in BEIR"],
    options: AddOptions,
    reading: ReadOptions,
    *,
    queries: Annotated[str, Reads(".csv"), "a file as queries import takes it, maybe with splits"] = "",
    name: Name = "",
    project: Annotated[str, "add to this project instead of a new one"] = "",
    password: Password = "",
) -> int:
    """Import documents, and their benchmark and human queries where they come with them, as a project."""
    done = adding.add(
        run.workspace, path, queries, name=name, project=project, options=options, reading=reading,
        passwords=_passwords(password), watch=answers.reading,
    )  # fmt: skip

    problem = looking.problem(done.corpus)
    view = {"problem": problem, "not read": done.not_read if problem else (), **brought(done)}
    return run.say(answers.plain(done, id=done.project.id), view)


def brought(done: Added) -> dict[str, Any]:
    """Return what an import made and left out, for people."""
    corpus = f"{done.corpus.id}: {counted(done.corpus.n_documents, done.corpus.unit)}"
    if done.existed:
        corpus += " (it was here)"

    benchmark = ""
    if done.benchmark is not None:
        benchmark = f"{done.benchmark.name}: queries by split: {answers.value_cell(done.benchmark.judged)}"

    return {
        "project": done.project.id,
        "corpus": corpus,
        "benchmark": benchmark,
        "query set": [f"{q.id}: {counted(q.n_queries, 'pair')}" for q in done.query_sets],
        "left out": [f"{reason}: {n:,}" for reason, n in done.left_out.items()],
        "note": done.stated,
        "missing": done.missing,
    }


@command("projects list")
def list_(run: Run) -> int:
    """The projects: those made, and one for each corpus that is in none."""
    used = projects.default(run.workspace)
    listed = projects.list_projects(run.workspace)
    rows = [answers.plain(project, used=used is not None and used.id == project.id) for project in listed]
    for problem in projects.damaged(run.workspace):
        warn(problem)
    return run.say(rows, columns=("id", "name", "corpora", "benchmarks", "used", "created"), empty=projects.NONE_YET)


@command("projects show")
def show(run: Run, id: Id) -> int:
    """One project: its members, query sets and jobs."""
    project = projects.resolve(run.workspace, id)
    scope = projects.members(run.workspace, project.id)
    own_jobs = [job.id for job in jobs.list_jobs(run.workspace) if project.id in scope.index.of_job(job)]
    value = answers.plain(project, query_sets=scope.query_sets, jobs=own_jobs)
    return run.say(value, {**value, "jobs": len(own_jobs), "implied": ""})


@command("projects use")
def use(run: Run, name: Annotated[str, "its id, name or a unique prefix of its id; all for none"]) -> int:
    """Remember a project: commands without --project are about it; all forgets it."""
    project = projects.use(run.workspace, name)
    subject = f"{project.name} ({project.id})" if project else "the whole workspace"
    return run.say(project, f"commands are about {subject}")


@command("projects delete")
def delete(run: Run, id: Id) -> int:
    """Remove a project; its corpora and benchmarks stay."""
    project = projects.resolve(run.workspace, id)
    projects.delete(run.workspace, project.id)
    return run.deleted(project.id, "its corpora and benchmarks stay")


def joined(run: Run, **members: Sequence[str]) -> None:
    """Add new ``corpora`` or ``benchmarks`` to the project that the command is about."""
    if run.scope.project is not None:
        projects.add_members(run.workspace, run.scope.project.id, **members)


@command("corpus add", project=())
def corpus_add(
    run: Run,
    path: Annotated[
        str,
        Reads(),
        "PDF, Word, slides, Excel, OpenDocument, web pages, EPUB, text, Markdown, JSON Lines, CSV, Parquet; "
        "a zip or folder of them; BEIR",
    ],
    options: ReadOptions,
    *,
    name: Name = "",
    password: Password = "",
) -> int:
    """Read documents from a file or folder and store them once."""
    passwords = _passwords(password)
    added = corpora.add(run.workspace, path, name=name, options=options, passwords=passwords, watch=answers.reading)
    joined(run, corpora=[added.corpus.id])
    more = {"existed": added.existed, "query_set": added.query_set, "stated": added.stated}

    return run.say(
        answers.plain(added.corpus, **more),
        {**_corpus(added.corpus), "query set": added.query_set, "carried": added.stated},
    )


def _corpus(manifest: CorpusManifest) -> dict[str, Any]:
    """Return what was read and what was rejected, for the terminal."""
    spread, unit = manifest.lengths
    rejected = [f"{row.where}: {row.kind}: {row.reason}" for row in manifest.rejected[:SHOWN_PROBLEMS]]
    return {
        "corpus": f"{manifest.id}: {counted(manifest.n_documents, manifest.unit)}",
        f"{unit} per {manifest.unit}": f"median {spread.median:.0f}, from {spread.min} to {spread.max}",
        "languages": ", ".join(f"{code} {share:.0%}" for code, share in manifest.languages.items()),
        "problem": looking.problem(manifest),
        "missing": looking.losses(manifest),
        "note": manifest.notes,
        "rejected": answers.first_of(manifest.n_rejected, rejected),
    }


@command("corpus list", project=())
def corpus_list(run: Run) -> int:
    """The corpora in the workspace."""
    listed = run.scope.keep("corpus", corpora.list_corpora(run.workspace))
    titles = looking.titles(listed)
    rows = [answers.plain(manifest, title=titles[manifest.id]) for manifest in listed]
    columns = ("id", "title", "n_documents", "created")
    return run.say(rows, columns=columns, empty="No corpus yet: corpus add PATH")


@command("corpus show")
def corpus_show(run: Run, id: Id) -> int:
    """One corpus."""
    manifest = corpora.resolve_corpus(run.workspace, id)
    failed = looking.failed(run.workspace, manifest.id)
    view = {**_corpus(manifest), "failed": answers.failed(failed)}
    return run.say(answers.plain(manifest, failed=failed), view)


@command("corpus delete")
def corpus_delete(run: Run, id: Id) -> int:
    """Remove a corpus that no query set was made for."""
    manifest = corpora.resolve_corpus(run.workspace, id)
    corpora.delete(run.workspace, manifest.id)
    return run.deleted(manifest.id)
