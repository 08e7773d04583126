"""Commands on results: evaluations, the leaderboard, comparisons, error analysis, and files for other tools."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection
from typing import Annotated, Any, Literal

from cdp.base.config import EvaluationConfig, ResultImportConfig
from cdp.cli import display
from cdp.cli.answers import Run, note, refuse_unless, warn
from cdp.cli.benchmarks import score_values, scores_table
from cdp.cli.declare import command
from cdp.cli.overview import DONE

RunId = Annotated[str, "a run by its id or name (all its rows), or the id of one evaluation"]


@command("evaluate", places=("retriever",), project=("benchmark",), job=True)
def evaluate(run: Run, config: EvaluationConfig) -> int:
    """Evaluate a retriever on a benchmark, or on each of a group."""
    from cdp.services import benchmarks, evaluation

    if not benchmarks.is_several(run.workspace, config.benchmark):
        return run.started(evaluation.start(run.workspace, config))
    begun = benchmarks.evaluate(run.workspace, config)
    left_out = f"; missing: {', '.join(begun.missing)}" if begun.missing else ""
    note(
        f"{begun.name}: started {len(begun.jobs)}, done before {len(begun.reused)}, "
        f"in the workspace {begun.coverage}{left_out}"
    )
    code = run.followed(begun.jobs) if run.wait else DONE
    means = [s for s in benchmarks.scores(run.workspace, begun.name, config.retriever) if s.protocol == config.protocol]
    value = {
        "jobs": list(begun.jobs),
        "reused": list(begun.reused),
        "missing": list(begun.missing),
        "coverage": begun.coverage,
        "scores": score_values(means),
    }
    lines = [*begun.jobs, *([scores_table(means)] if means else [])]
    run.say(value, "\n".join(lines) or "nothing was left to evaluate")
    return code


# the leaderboard


@command("results list", project=())
def list_(
    run: Run,
    *,
    benchmark: Annotated[list[str] | None, "only this one; repeatable"] = None,
    tag: Annotated[list[str] | None, "only runs with this tag; repeatable"] = None,
    match: Annotated[str, "only rows in which these words stand", "WORDS"] = "",
    sort: Annotated[str, "by this column; -COLUMN for the other direction", "COLUMN"] = "",
    column: Annotated[list[str] | None, "show this column too; repeatable", "COLUMN"] = None,
    columns: Annotated[bool, "name the columns, each with its meaning"] = False,
    archived: Annotated[bool, "archived rows too"] = False,
) -> int:
    """The leaderboard: every run on every benchmark beside the retriever that it started from, the best first."""
    from cdp.services.results import board as boards

    if columns:
        rows = [{"column": each.key, "holds": each.help} for each in boards.COLUMNS]
        return run.say(rows, display.table(rows))
    board = boards.filtered(
        boards.board(run.workspace, run.scope),
        benchmarks=benchmark or [],
        text=match,
        tags=tag or [],
        archived=archived,
        sort=sort,
    )
    always = ("ndcg", "difference", "interval", "name", "badges", "benchmark", "start")
    chosen = boards.columns([*always, *(["tags"] if board.tags else []), *(column or ()), "id"])
    shown = [{each.title: each.text(row) for each in chosen} for row in board.rows]
    empty = "No row fits." if board.every else "No result yet: evaluate RETRIEVER --benchmark NAME"
    text = display.table(shown, empty=empty)
    return run.say([boards.record(row) for row in board.rows], "\n".join([text, *boards.left_out(board)]))


@command("results edit")
def edit(
    run: Run,
    id: RunId,
    *,
    name: Annotated[str | None, "another name; empty for the generated one"] = None,
    note: Annotated[str | None, "a note beside it; empty for none"] = None,
    tag: Annotated[list[str] | None, "add this tag; repeatable", "TAG"] = None,
    untag: Annotated[list[str] | None, "remove this tag; repeatable", "TAG"] = None,
    archive: Annotated[bool, "leave it out of the list; nothing is deleted"] = False,
    restore: Annotated[bool, "bring it back into the list"] = False,
) -> int:
    """Name, tag, note, archive or restore a run, or archive one evaluation of it."""
    from cdp.services.results import board as boards
    from cdp.services.results import run_notes

    refuse_unless(not (archive and restore), "--archive and --restore contradict each other.", "Name one.")
    changes = (name, note, tag or None, untag or None, archive or restore or None)
    refuse_unless(any(change is not None for change in changes), "Nothing is to be changed.", "Name --name, --tag …")
    row = boards.find(boards.board(run.workspace).every, id)[0]
    if tag or untag:
        run_notes.tag(run.workspace, [row.run], add=tag or (), remove=untag or ())
    if note is not None:
        run_notes.note(run.workspace, row.run, note)
    if name is not None:
        run_notes.rename(run.workspace, row.run, name)
    if archive or restore:
        run_notes.archive(run.workspace, [row.id if row.id == id else row.run], archived=archive)
    rows = [other for other in boards.board(run.workspace).every if other.run == row.run]
    first, hidden = rows[0], [other.id for other in rows if other.archived]
    value = {"id": row.run, "name": first.name, "tags": list(first.tags), "note": first.note, "archived": hidden}
    tags = f", tags: {', '.join(first.tags)}" if first.tags else ""
    gone = f", archived: {len(hidden)} of {display.many(len(rows), 'row')}" if hidden else ""
    return run.say(value, f"{first.name} ({row.run}){tags}{gone}")


# comparing


@command("results compare", project=())
def compare(
    run: Run,
    *,
    baseline: Annotated[str, "a retriever: preset, training job, or model"],
    retriever: Annotated[list[str] | None, "compare only this one; repeatable"] = None,
    benchmark: Annotated[list[str] | None, "only on this one; repeatable"] = None,
    test: Annotated[Literal["t", "randomisation"], "the test that marks significance; csv and json hold both"] = "t",
    over_seeds: Annotated[bool, "average runs whose settings differ in the seed alone"] = False,
    format: Annotated[
        Literal["table", "csv", "json", "markdown", "latex", "table-csv"],
        "markdown, latex, table-csv: a paper's table; csv: every difference in full; json: both",
    ] = "table",
) -> int:
    """A table of retrievers by benchmarks, and every difference from a baseline with its tests."""
    from cdp.services import results
    from cdp.services.results import means, tables

    # Holm's correction counts the runs of the project alone.
    own = run.scope.keep("evaluation", results.list_evaluations(run.workspace))
    comparison = results.compare(run.workspace, baseline, retriever, test=test, over_seeds=over_seeds, evaluations=own)
    comparison = means.only(comparison, benchmark or [])
    run.json = run.json or format == "json"
    if not run.json and format != "table":
        return run.say(None, tables.write(comparison, format).removesuffix("\n"))
    remarks = tables.remarks(run.workspace, comparison)
    text = _comparison(comparison, tables.paper_table(comparison), remarks)
    return run.say({**tables.to_dict(comparison), "remarks": remarks}, text)


def _comparison(comparison: Any, paper: Any, remarks: Collection[str]) -> str:
    """Return the table of a paper, then each difference with its tests, and the remarks."""
    from cdp.services.results.tables import spread

    scores = [
        {"NDCG@10": name, **{column: _score(cell) for column, cell in zip(paper.columns, cells, strict=True)}}
        for name, cells in paper.rows
    ]
    marked = any(row.marks for row in comparison.rows)
    rows = [
        {
            "benchmark": row.place,
            "retriever": row.retriever,
            "NDCG@10": spread(row) if row.seeds > 1 else row.ndcg,
            "difference": f"{row.difference:+.2f}{'†' if row.significant else ''}",
            "95% interval": f"{row.low:+.2f} to {row.high:+.2f}",
            "p (t)": _p(row.p_t),
            "p (random.)": _p(row.p_random),
            "p (seeds)": _p(row.p_seeds),
            "p (Holm)": _p(row.p_holm),
            "effect": row.effect,
            "queries": row.n_queries,
            **({"marks": row.marks} if marked else {}),
        }
        for row in comparison.rows
        if row.difference is not None
    ]
    parts = [display.table(scores, ["NDCG@10", *paper.columns], "no results to compare")]
    if rows:
        parts.append(f"Differences from {comparison.baseline}:\n{display.table(rows)}")
    parts += [f"{'† ' if i == 0 else ''}{text}" for i, text in enumerate(paper.notes)]
    parts += ["\n".join(remarks)] if remarks else []
    if comparison.families and not any(row.seeds > 1 for row in comparison.rows):
        names = ", ".join(f"{name} ({n} seeds)" for name, n in comparison.families.items())
        parts.append(f"Differ in nothing but the seed from another run: {names}. Average them with --over-seeds.")
    return "\n\n".join(parts)


def _score(cell: Any) -> str:
    """Return ``52.2†``, a partial mean with its coverage, the best in asterisks and the second in underscores."""
    if cell.value is None:
        return "–"
    mark = {1: "*", 2: "_"}.get(cell.place, "")
    more = ", ".join(filter(None, (cell.coverage, cell.mark)))
    return f"{mark}{cell.value:.1f}{mark}{'†' if cell.dagger else ''}{f' ({more})' if more else ''}"


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


@command("results errors")
def errors(
    run: Run,
    baseline: Annotated[str, "a retriever, as results list names it"],
    other: Annotated[str, "the retriever beside it"],
    *,
    benchmark: Annotated[str, "the benchmark that both were evaluated on"],
    split: Annotated[str, "its split, if both were evaluated on several"] = "",
    protocol: Annotated[str, "the protocol, if both were evaluated with several"] = "",
    source: Annotated[
        str,
        "what names the document that a passage is from: a field of corpus.jsonl, id-prefix "
        "(its id without the number at its end), or auto (such a field if all have it, else id-prefix)",
        "FIELD",
    ] = "auto",
    language: Annotated[str, "of the queries; the benchmark's own if omitted"] = "",
    show: Annotated[int, "how many wins and losses to show; 5 if omitted"] = 5,
) -> int:
    """Queries that only one of two retrievers answers at rank 1, and at which CW gains sit."""
    from cdp.services.results.errors import analyse, pair

    ids = pair(run.workspace, baseline, other, benchmark, split, protocol)
    analysis = analyse(run.workspace, *ids, source=source, language=language)
    kinds = {"wins": analysis.kinds(analysis.wins), "losses": analysis.kinds(analysis.losses)}
    run.say({**display.plain(analysis), "kinds": kinds}, _errors(analysis, max(0, show)))
    if analysis.n_failed:
        first, n = analysis.failed[0], display.many(analysis.n_failed, "query", "queries")
        warn(f"{n} failed; the first, {first['id']}: {first['reason']}")
    return DONE


def _errors(analysis: Any, most: int) -> str:
    lines = [
        f"{analysis.place}: {display.many(analysis.n_queries, 'query', 'queries')}. Right at rank 1: both "
        f"{analysis.both}, neither {analysis.neither}, only {analysis.other} {len(analysis.wins)}, only "
        f"{analysis.baseline} {len(analysis.losses)}.",
        analysis.rule,
    ]
    for right, wrong, cases in (
        (analysis.other, analysis.baseline, analysis.wins),
        (analysis.baseline, analysis.other, analysis.losses),
    ):
        kinds = ", ".join(f"{kind} {n}" for kind, n in analysis.kinds(cases).items())
        lines += ["", f"Only {right} is right: {len(cases)} ({wrong} has first, of the right passage: {kinds})"]
        for case in cases[:most]:
            lines += ["", f"  {case.query_id}  {_marked(case.query, case.words)}", f"  {case.kind}"]
            passages = (("right", case.right), ("wrong", case.wrong))
            lines += [f"    {word:<5}  {_passage(passage, case.words)}" for word, passage in passages]
    rows = [
        {
            "content words": bucket.name,
            "queries": bucket.n,
            "difference": None if bucket.mean is None else f"{bucket.mean:+.2f}",
            "95% interval": "–" if bucket.interval is None else "{:+.2f} to {:+.2f}".format(*bucket.interval),
        }
        for bucket in analysis.gains
    ]
    return "\n".join([*lines, "", "NDCG@10 points by CW:", display.table(rows)])


def _passage(passage: Any, words: Collection[str]) -> str:
    if passage is None:
        return "–"
    text = " ".join(f"{passage.title} {passage.text}".split())
    room = max(60, shutil.get_terminal_size().columns - 16 - len(passage.id))
    return f"{passage.id}  {_marked(text if len(text) <= room else f'{text[: room - 1]}…', words)}"


def _marked(text: str, words: Collection[str]) -> str:
    """Return the text without control characters, on a terminal with its content words underlined."""
    from cdp.services.results.errors import marked

    plain = "".join(character if character.isprintable() else " " for character in text)
    if not sys.stdout.isatty():
        return plain
    return "".join(f"\x1b[4m{piece}\x1b[24m" if underlined else piece for piece, underlined in marked(plain, words))


@command("results export")
def export(
    run: Run,
    evaluation: Annotated[str, "its id, or a unique prefix of it"],
    *,
    format: Annotated[
        Literal["trec-run", "trec-qrels", "mteb", "mteb-predictions", "ir-measures"], "what the other program reads"
    ],
    out: Annotated[str, "the file or folder, named after the evaluation if omitted; - for standard output"] = "",
) -> int:
    """An evaluation as TREC run or qrels, in MTEB's schema, or as ir_measures' scores per query."""
    from cdp.services.results import files

    with run.output(out) as target:
        path = files.save(run.workspace, evaluation, format, target)
    return run.say({"path": str(path), "format": format}, f"written: {path}")


@command("results import", places=("path",), job=True)
def import_(run: Run, config: ResultImportConfig) -> int:
    """Take in a run or scores per query of another program (TREC, MTEB, ir_measures; also .gz), as an evaluation."""
    from cdp.services.results import importing

    return run.started(importing.start(run.workspace, config))
