"""Commands on results: the list, comparisons, error analysis, and files for other tools."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Collection
from typing import Any

from cdp.base.config import ResultImportConfig
from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.answers import DONE, say, started, warn


def compare(workspace: Workspace, a: argparse.Namespace) -> int:
    """``results compare``."""
    from cdp.services import results
    from cdp.services.results import means, tables

    comparison = results.compare(workspace, a.baseline, a.retriever or None, test=a.test, over_seeds=a.over_seeds)
    comparison = means.only(comparison, a.benchmark)
    a.json = a.json or a.format == "json"
    if not a.json and a.format != "table":
        return say(a, None, tables.write(comparison, a.format).removesuffix("\n"))
    remarks = tables.remarks(workspace, comparison)
    value = {**tables.to_dict(comparison), "remarks": remarks}
    return say(a, value, _comparison(comparison, tables.paper_table(comparison), remarks))


def _comparison(comparison: Any, paper: Any, remarks: Collection[str]) -> str:
    """The table of a paper, then each difference with its tests, and what has to be said beside."""
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
        parts.append(f"Differences from {comparison.baseline}:\n{display.table(rows, list(rows[0]), '')}")
    parts += [f"{'† ' if i == 0 else ''}{note}" for i, note in enumerate(paper.notes)]
    parts += ["\n".join(remarks)] if remarks else []
    if comparison.families and not any(row.seeds > 1 for row in comparison.rows):
        names = ", ".join(f"{name} ({n} seeds)" for name, n in comparison.families.items())
        parts.append(f"Differ in nothing but the seed from another run: {names}. Average them with --over-seeds.")
    return "\n\n".join(parts)


def _score(cell: Any) -> str:
    """``52.2†``, a partial mean with its coverage, the best between asterisks and the second between underscores."""
    if cell.value is None:
        return "–"
    mark = {1: "*", 2: "_"}.get(cell.place, "")
    more = ", ".join(filter(None, (cell.coverage, cell.mark)))
    covered = f" ({more})" if more else ""
    return f"{mark}{cell.value:.1f}{mark}{'†' if cell.dagger else ''}{covered}"


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def errors(workspace: Workspace, a: argparse.Namespace) -> int:
    """``results errors``."""
    from cdp.services.results.errors import analyse, pair

    ids = pair(workspace, a.baseline, a.other, a.benchmark, a.split, a.protocol)
    analysis = analyse(workspace, *ids, source=a.source, language=a.language)
    value = {
        **display.plain(analysis),
        "kinds": {"wins": analysis.kinds(analysis.wins), "losses": analysis.kinds(analysis.losses)},
    }
    say(a, value, _errors(analysis, max(0, a.show)))
    if analysis.n_failed:
        first = analysis.failed[0]
        warn(
            f"{display.many(analysis.n_failed, 'query', 'queries')} failed; the first, {first['id']}: {first['reason']}"
        )
    return DONE


def _errors(analysis: Any, most: int) -> str:
    counted = "1 query" if analysis.n_queries == 1 else f"{analysis.n_queries:,} queries"
    lines = [
        f"{analysis.place}: {counted}. Right at rank 1: both {analysis.both}, neither {analysis.neither}, "
        f"only {analysis.other} {len(analysis.wins)}, only {analysis.baseline} {len(analysis.losses)}.",
        analysis.rule,
    ]
    for title, cases, wrong in (
        (f"Only {analysis.other} is right", analysis.wins, analysis.baseline),
        (f"Only {analysis.baseline} is right", analysis.losses, analysis.other),
    ):
        kinds = ", ".join(f"{kind} {n}" for kind, n in analysis.kinds(cases).items())
        lines += ["", f"{title}: {len(cases)} ({wrong} has first, of the right passage: {kinds})"]
        for case in cases[:most]:
            lines += ["", f"  {case.query_id}  {_marked(case.query, case.words)}", f"  {case.kind}"]
            lines += [
                f"    right  {_passage(case.right, case.words)}",
                f"    wrong  {_passage(case.wrong, case.words)}",
            ]
    rows = [
        {
            "content words": bucket.name,
            "queries": bucket.n,
            "difference": None if bucket.mean is None else f"{bucket.mean:+.2f}",
            "95% interval": "–" if bucket.interval is None else "{:+.2f} to {:+.2f}".format(*bucket.interval),
        }
        for bucket in analysis.gains
    ]
    return "\n".join([*lines, "", "NDCG@10 points by CW:", display.table(rows, list(rows[0]), "")])


def _passage(passage: Any, words: Collection[str]) -> str:
    if passage is None:
        return "–"
    text = " ".join(f"{passage.title} {passage.text}".split())
    room = max(60, shutil.get_terminal_size().columns - 16 - len(passage.id))
    return f"{passage.id}  {_marked(text if len(text) <= room else f'{text[: room - 1]}…', words)}"


def _marked(text: str, words: Collection[str]) -> str:
    """The text with its content words underlined, on a terminal; without control characters of its own."""
    from cdp.services.results.errors import marked

    plain = "".join(character if character.isprintable() else " " for character in text)
    if not sys.stdout.isatty():
        return plain
    return "".join(f"\x1b[4m{piece}\x1b[24m" if underlined else piece for piece, underlined in marked(plain, words))


def export(workspace: Workspace, a: argparse.Namespace) -> int:
    """``results export``."""
    from cdp.services.results import files

    path = files.save(workspace, a.evaluation, a.format, a.out)
    return say(a, {"path": str(path), "format": a.format}, f"written: {path}")


def import_(workspace: Workspace, a: argparse.Namespace) -> int:
    """``results import``."""
    from cdp.services.results import importing

    values = {name: getattr(a, name) for name in ResultImportConfig.settings()}
    return started(workspace, a, importing.start(workspace, ResultImportConfig.from_dict(values)))
