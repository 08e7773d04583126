"""Commands on benchmarks: the registry, downloads, subsets, and evaluations of whole groups."""

from __future__ import annotations

import argparse
from typing import Any

from cdp.base.config import EvaluationConfig
from cdp.base.workspace import Workspace
from cdp.cli import display, projects
from cdp.cli.answers import DONE, followed, note, say, started
from cdp.services.jobs import job_words


def list_(workspace: Workspace, a: argparse.Namespace) -> int:
    """``benchmarks list``: the registry, then what else is in the workspace."""
    from cdp.services import benchmarks

    rows = [_row(k) for k in benchmarks.list_registry(workspace, a.group)]
    own = [] if a.group else benchmarks.list_own(workspace)
    columns = ["name", "groups", "documents", "queries", "cw", "language", "licence", "here"]
    text = display.table([_shown(row) for row in rows], columns, "")
    if own:
        mine = [{**display.plain(info), "note": info.problem or _subset(info.subset_of)} for info in own]
        text += "\n\nOf your own:\n" + display.table(mine, ["name", "n_documents", "n_queries", "splits", "note"], "")
    text += "\n\nCW: mean content words of a query. What is known of one: benchmarks show NAME"
    return say(a, {"registry": rows, "own": own}, text)


def add(workspace: Workspace, a: argparse.Namespace) -> int:
    """``benchmarks add PATH``."""
    from cdp.services import benchmarks

    info = benchmarks.add(workspace, a.path, name=a.name, language=a.language)
    projects.joined(workspace, a, benchmark=info.name)
    lines = _stored_lines(benchmarks.show(workspace, info.name))
    return say(a, {**display.plain(info), "id": info.name}, "\n".join(lines))


def training_set(workspace: Workspace, a: argparse.Namespace) -> int:
    """``benchmarks training-set NAME …``."""
    from cdp.services.training import training_sets

    imported = training_sets.from_benchmarks(workspace, a.names, split=a.split, name=a.name)
    languages = ", ".join(
        f"{count:,} in {language or 'no recorded language'}" for language, count in imported.languages.items()
    )
    lines = [
        f"corpus {imported.corpus.id}: {imported.corpus.n_documents:,} documents",
        f"query set {imported.query_set.id}: {imported.query_set.n_queries:,} queries ({languages})",
        *(f"left out: {count:,} {reason}" for reason, count in imported.left_out.items()),
    ]
    return say(a, {**display.plain(imported), "id": imported.query_set.id}, "\n".join(lines))


def _subset(of: str) -> str:
    return f"a subset of {of}: scores are higher than on the whole" if of else ""


def _row(item: Any) -> dict[str, Any]:
    entry = item.entry
    return {
        "name": entry.name,
        "title": entry.title,
        "groups": list(entry.groups),
        "documents": entry.documents,
        "queries": entry.queries,
        "text_bytes": entry.text_bytes,
        "cw": entry.cw,
        "figures": entry.figures,
        "language": entry.language,
        "licence": entry.licence,
        "here": item.state,
        "stored": list(item.stored),
    }


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, **{name: _number(row[name]) for name in ("documents", "queries")}}


def show(workspace: Workspace, a: argparse.Namespace) -> int:
    """``benchmarks show NAME``."""
    from cdp.services import benchmarks

    benchmark = benchmarks.show(workspace, a.name)
    hub = benchmarks.size_on_hub(a.name) if a.hub else None
    lines = [] if benchmark.entry is None else _entry_lines(benchmark.entry)
    if benchmark.group is not None:
        here = sum(member.here for member in benchmark.members)
        lines = [f"{benchmark.group.title}: {here} of {len(benchmark.members)} are in the workspace"]
    if benchmark.members:
        rows = [_row(member) for member in benchmark.members]
        columns = ["name", "documents", "queries", "cw", "licence", "here"]
        lines += ["", display.table([_shown(row) for row in rows], columns, "")]
    if benchmark.info is not None:
        lines += ["", *_stored_lines(benchmark)]
    if hub is not None:
        commits = ", ".join(f"{repo} {commit[:12]}" for repo, commit in hub["commits"].items())
        lines += ["", f"On the hub now: {job_words.size(hub['bytes'])} to download ({commits})"]
    if benchmark.scores:
        lines += ["", "NDCG@10 (%), mean over what is covered:", _scores(benchmark.scores)]
    value = {**display.plain(benchmark), "id": benchmark.name, "hub": hub, "scores": _score_values(benchmark.scores)}
    return say(a, value, "\n".join(lines))


def _entry_lines(entry: Any) -> list[str]:
    size = "not stated" if entry.text_bytes is None else f"about {job_words.size(entry.text_bytes)} of text"
    cw = "not stated" if entry.cw is None else f"{entry.cw:.2f}"
    counts = f"{_number(entry.documents)} documents, {_number(entry.queries)} queries ({entry.figures})"
    lines = [
        f"{entry.name}: {entry.title}",
        f"size: {counts}, {size}",
        f"CW: {cw} · language: {entry.language} · split: {entry.split}",
        f"licence: {entry.licence} ({entry.licence_source})",
    ]
    if entry.repos:
        lines.append(f"from: {', '.join(entry.repos)}")
    return lines + ([f"note: {entry.note}"] if entry.note else [])


def _number(n: int | None) -> str:
    return "not stated" if n is None else f"{n:,}"


def _stored_lines(benchmark: Any) -> list[str]:
    info, manifest = benchmark.info, benchmark.manifest
    judged = ", ".join(f"{split} {n:,}" for split, n in info.judged.items())
    lines = [
        f"In the workspace as {info.name}: {info.n_documents:,} documents, judged queries: {judged}, "
        f"{job_words.size(info.bytes)}",
        f"language: {info.language or 'cannot be told, so its words are counted as English'}"
        f"{'' if manifest.language else ' (guessed from its texts; benchmarks add PATH --language CODE sets it)'}",
    ]
    if benchmark.entry is None and info.licence:
        lines.append(f"licence: {info.licence}")
    lines += [f"read at {repo} {commit}" for repo, commit in manifest.commits.items()]
    return lines + [f"note: {note}" for note in (*manifest.notes, *info.warnings) if note != _note_of(benchmark)]


def _note_of(benchmark: Any) -> str:
    return "" if benchmark.entry is None else str(benchmark.entry.note)


def _score_values(scores: Any) -> list[dict[str, Any]]:
    return [
        {
            "retriever": s.retriever_id,
            "name": s.retriever,
            "protocol": s.protocol,
            "ndcg@10": s.mean.value,
            "coverage": s.mean.coverage,
            "missing": list(s.mean.missing),
            "scores": dict(s.mean.scores),
        }
        for s in scores
    ]


def _scores(scores: Any) -> str:
    return display.table(_score_values(scores), ["name", "protocol", "ndcg@10", "coverage"], "")


def download(workspace: Workspace, a: argparse.Namespace) -> int:
    """``benchmarks download NAME``: says what it is before it starts."""
    from cdp.base.config import DownloadConfig
    from cdp.services import benchmarks

    config = DownloadConfig.from_dict(
        {"benchmark": a.name, "revision": a.revision, "folder": a.folder, "name": a.called}
    )
    benchmarks.check_download(config)
    note("\n".join(_before(benchmarks.show(workspace, a.name))))
    return started(workspace, a, benchmarks.start_download(workspace, config))


def _before(benchmark: Any) -> list[str]:
    """What a download comes to, said before it starts: size, licence and CW of one benchmark, or of each in a group."""
    if benchmark.entry is not None:
        return _entry_lines(benchmark.entry)
    missing = [member.entry for member in benchmark.members if not member.here]
    total = sum(entry.text_bytes or 0 for entry in missing)
    rows = [_row(member) for member in benchmark.members if not member.here]
    listed = display.table(rows, ["name", "documents", "queries", "cw", "licence"], "nothing is missing")
    return [f"{benchmark.group.title}: {len(missing)} to bring in, about {job_words.size(total)} of text", listed]


def sample(workspace: Workspace, a: argparse.Namespace) -> int:
    """``benchmarks sample NAME``."""
    from cdp.services import benchmarks

    info, existed = benchmarks.sample(
        workspace, a.name, queries=a.queries, documents=a.documents, split=a.split, seed=a.seed, called=a.called
    )
    lines = [
        f"{info.name}: {info.n_queries:,} queries, {info.n_documents:,} documents"
        + (" (it was there already)" if existed else ""),
        *(f"note: {note}" for note in info.warnings),
    ]
    return say(a, {**display.plain(info), "id": info.name, "existed": existed}, "\n".join(lines))


def delete(workspace: Workspace, a: argparse.Namespace) -> int:
    """``benchmarks delete NAME``."""
    from cdp.services import benchmarks

    benchmarks.delete(workspace, a.name)
    return say(a, {"id": a.name, "deleted": True}, f"{a.name} is removed; results on it stay")


def evaluate(workspace: Workspace, a: argparse.Namespace, config: EvaluationConfig) -> int:
    """``evaluate RETRIEVER --benchmark GROUP``: one job per member; with ``--wait`` the mean and what it covers."""
    from cdp.services import benchmarks

    begun = benchmarks.evaluate(workspace, config)
    left_out = f"; missing: {', '.join(begun.missing)}" if begun.missing else ""
    note(
        f"{begun.name}: started {len(begun.jobs)}, done before {len(begun.reused)}, "
        f"in the workspace {begun.coverage}{left_out}"
    )
    code = DONE
    for job_id in begun.jobs if a.wait else ():
        code = max(code, followed(workspace, job_id))
    means = [s for s in benchmarks.scores(workspace, begun.name, config.retriever) if s.protocol == config.protocol]
    value = {
        "jobs": list(begun.jobs),
        "reused": list(begun.reused),
        "missing": list(begun.missing),
        "coverage": begun.coverage,
        "scores": _score_values(means),
    }
    lines = [*begun.jobs, *([_scores(means)] if means else [])]
    say(a, value, "\n".join(lines) or "nothing was left to evaluate")
    return code
