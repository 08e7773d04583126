"""Commands on the program itself: search, serve, app, demo, doctor, workspace, catalog, completion."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from cdp.base.config import IndexConfig, ServingConfig
from cdp.base.errors import ConfigError
from cdp.base.text import size, typed_folder
from cdp.cli import answers
from cdp.cli.answers import Run, note, note_sent, refuse_unless
from cdp.cli.declare import command, completion_script
from cdp.cli.overview import DONE, exit_code
from cdp.retrievers import sending
from cdp.services import commands, demo, evaluation, jobs, projects, queries
from cdp.services import search as searching
from cdp.services.doctor import BY_DEFAULT, DISTRIBUTION, PRUNABLE, check, prunable, prune
from cdp.services.search import SearchAnswer


@command("search", project=("corpus",))
def search(
    run: Run,
    query: Annotated[str, "the query; one that begins with a dash goes to the end, after --"],
    *,
    retriever: Annotated[
        list[str],
        "bm25, a preset, a training's id or name, a model's name or folder, api:MODEL@ADDRESS, or "
        "reranked:bm25:minilm-multi, late interaction over the first 100 of another; up to three times",
    ],
    corpus: Annotated[str, "the corpus to search (id, name or unique prefix)"],
    k: Annotated[int, "documents to show; 10 if omitted"] = 10,
    index: Annotated[bool, "index the documents first where that takes long, as a job, and wait for it"] = False,
) -> int:
    """Search documents with up to three retrievers, side by side."""
    answered = searching.search(run.workspace, query, retriever, corpus, k, in_process=True)
    unindexed = [answer for answer in answered.answers if answer.unprepared]
    if unindexed and index:
        for answer in unindexed:
            sent = sending.for_index(run.workspace, answer.to_index, answered.corpus.id)
            note_sent(sent)
            if not sent:
                note(f"indexing with {answer.title}")

            config = IndexConfig(retriever=answer.to_index, corpus=answered.corpus.id)
            run.followed([jobs.start(run.workspace, "index", config)])
        answered = searching.search(run.workspace, query, retriever, corpus, k, in_process=True)

    # Exit code 1 if one of several retrievers could not answer; if none could, the first one's reason is raised.
    problems = [answer.problem for answer in answered.answers]
    if all(problems):
        raise ConfigError(_problem(answered.answers[0]))

    found = list(map(_value, answered.answers))
    value = {"query": answered.query, "corpus": answered.corpus.id, "answers": found}
    run.say(value, "\n\n".join(map(_hits, answered.answers)))
    return exit_code(not any(problems))


def _value(answer: SearchAnswer) -> dict[str, Any]:
    return {
        "retriever": answer.retriever,
        "name": answer.title,
        "hits": answer.hits,
        "seconds": round(answer.seconds, 4),
        "problem": answer.problem and {"message": answer.problem.message, "hint": answer.problem.hint},
    }


def _hits(answer: SearchAnswer) -> str:
    """Return one retriever's documents, a line each, or why it could not answer."""
    if answer.problem is not None:
        return f"{answer.title}: {_problem(answer)}"

    rows = []
    for hit in answer.hits:
        document = f"{hit.title} · {hit.text}".strip(" ·")
        rows.append({"rank": hit.rank, "score": f"{hit.score:.3f}", "id": hit.id, "document": document})

    head = f"{answer.title} ({1000 * answer.seconds:.0f} ms)"
    return f"{head}\n{answers.table(rows, empty='No document shares a word with the query.')}"


def _problem(answer: SearchAnswer) -> str:
    assert answer.problem is not None
    hint = answer.problem.hint
    if answer.unprepared:
        hint = "Add --index, or choose another retriever."
    return f"{answer.problem.message} {hint}".rstrip()


@command("serve", places=("retriever",))
def serve(run: Run, config: ServingConfig) -> int:
    """Search and OpenAI-compatible embeddings over HTTP, until Ctrl-C; with --json a line says that it is ready."""
    if not config.name and typed_folder(config.retriever) is None:
        config = config.replace(name=config.retriever.strip())  # callers may write what was typed here

    def announce(model: str, address: str) -> None:
        if run.json:
            print(json.dumps({"id": model, "url": address, "state": "ready"}), flush=True)
        else:
            note(f"ready: {model} at {address}/v1")

    searching.serve(run.workspace, config, announce)
    return DONE


@command("app")
def app(
    run: Run,
    *,
    port: Annotated[int, "the port it listens on; 8501 if omitted"] = 8501,
    browser: Annotated[bool, "open it in a browser"] = False,
) -> int:
    """Open the dashboard: serve it on this machine until Ctrl-C."""
    refuse_unless(0 < port < 65536, f"There is no port {port}.", "Ports go from 1 to 65535.")
    refuse_unless(
        find_spec("streamlit"),
        "The dashboard needs Streamlit, which is not installed.",
        f"Install it with: {sys.executable} -m pip install '{DISTRIBUTION}[app]'",
    )

    command_line, environment = commands.dashboard(run.workspace.root, port, browser)
    note(f"The workspace is {run.workspace.root}")

    with subprocess.Popen(command_line, env=environment) as server:
        try:
            return server.wait()
        finally:  # Ctrl-C or SIGTERM
            server.terminate()
            server.wait()


@command("demo")
def demo_(run: Run) -> int:
    """Load the demo collection into the workspace."""
    done, corpus = demo.load(run.workspace), demo.corpus(run.workspace)
    project = projects.project_of(run.workspace, "corpus", corpus)
    sets = [query_set.id for query_set in queries.list_query_sets(run.workspace, corpus=corpus)]
    value = {"id": project and project.id, "corpus": corpus, "query_sets": sets, "benchmark": demo.NAME, "loaded": done}
    if not done:
        return run.say(value, "the demo is loaded")
    return run.say(value, {"loaded": done})


@command("doctor")
def doctor(run: Run) -> int:
    """Check this machine and the workspace."""
    checks = check(run.workspace)
    marks = {True: "ok  ", False: "BAD "}
    run.say(checks, "\n".join(f"{marks[c.ok]} {c.name}: {c.text}" for c in checks))
    return exit_code(all(c.ok for c in checks))


@command("workspace path")
def workspace_path(run: Run) -> int:
    """Print the folder of the workspace in use."""
    return run.say({"path": str(run.workspace.root)}, str(run.workspace.root))


@command("workspace prune")
def workspace_prune(
    run: Run,
    *,
    what: Annotated[
        list[str] | None,
        f"{'; '.join(map(': '.join, PRUNABLE.items()))}. Repeatable; {', '.join(BY_DEFAULT)} if omitted",
        tuple(PRUNABLE),
    ] = None,
    yes: Annotated[bool, "delete it"] = False,
) -> int:
    """List what can be deleted to free disk space; with --yes delete it."""
    look, verb = (prune, "deleted") if yes else (prunable, "can be deleted")
    rows = look(run.workspace, what or list(BY_DEFAULT))
    lines = [f"{row.what}: {len(row.paths):,} {verb}, {size(row.size)} ({PRUNABLE[row.what]})" for row in rows]
    if not yes and any(row.paths for row in rows):
        lines.append("Nothing was changed. Delete with: workspace prune --yes")

    return run.say({"done": yes, "rows": rows}, "\n".join(lines))


@command("catalog rebuild")
def catalog_rebuild(run: Run) -> int:
    """Make the catalogue again from the files."""
    summary = evaluation.rebuild(run.workspace)
    return run.say(summary, {"entries read from the files": summary["read"], "problem": summary["problems"]})


@command("catalog query")
def catalog_query(run: Run, sql: Annotated[str, "the query"]) -> int:
    """Run a read-only SQL query."""
    found = evaluation.query(run.workspace, sql)
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    table = answers.table(rows, found.columns, "no rows")
    if found.truncated:
        table += "\n… and more"

    return run.say(rows, table)


@command("completion")
def completion(run: Run, shell: Annotated[Literal["bash", "zsh"], "the shell"]) -> int:
    """Print the script that lets a shell complete the command cdp."""
    script = completion_script(shell)
    return run.say({"script": script}, script.rstrip("\n"))
