"""Commands on benchmarks: the registry, downloads, subsets, training sets."""

from __future__ import annotations

from typing import Annotated, Any

from cdp.base.config import DownloadConfig
from cdp.base.text import size
from cdp.cli import display
from cdp.cli.answers import Run, note
from cdp.cli.declare import Reads, command
from cdp.cli.projects import joined

Stored = Annotated[str, "a benchmark of the workspace"]
GROUPS = "ms-marco, trec-dl, beir, bright, multi-hop, miracl, miracl-train, nanobeir"


@command("benchmarks list")
def list_(run: Run, *, group: Annotated[str, "only of this group"] = "") -> int:
    """The registry and the workspace's own benchmarks, with sizes, licences and CW."""
    from cdp.services import benchmarks

    rows = [_row(known) for known in benchmarks.list_registry(run.workspace, group)]
    own = [] if group else benchmarks.list_own(run.workspace)
    text = _table(rows, "groups", "language", "here")
    if own:
        subset = "a subset of {}: scores are higher than on the whole"
        mine = [
            {**display.plain(info), "note": info.problem or (subset.format(info.subset_of) if info.subset_of else "")}
            for info in own
        ]
        text += "\n\nOf your own:\n" + display.table(mine, ["name", "n_documents", "n_queries", "splits", "note"])
    text += "\n\nCW: mean content words of a query. Details of one: benchmarks show NAME"
    return run.say({"registry": rows, "own": own}, text)


def _row(item: Any) -> dict[str, Any]:
    names = ("name", "title", "documents", "queries", "text_bytes", "cw", "figures", "language", "licence")
    entry = {name: getattr(item.entry, name) for name in names}
    return {**entry, "groups": list(item.entry.groups), "here": item.state, "stored": list(item.stored)}


def _table(rows: list[dict[str, Any]], *more: str) -> str:
    counted = [{**row, **{name: _number(row[name]) for name in ("documents", "queries")}} for row in rows]
    return display.table(counted, ["name", "documents", "queries", "cw", "licence", *more], "nothing is missing")


def _number(n: int | None) -> str:
    return "not stated" if n is None else f"{n:,}"


@command("benchmarks show")
def show(run: Run, name: Annotated[str, f"a benchmark or a group ({GROUPS})"]) -> int:
    """One benchmark or group: size, licence, protocol, source."""
    from cdp.services import benchmarks

    benchmark = benchmarks.show(run.workspace, name)
    lines = [] if benchmark.entry is None else _entry_lines(benchmark.entry)
    if benchmark.group is not None:
        here = sum(member.here for member in benchmark.members)
        lines = [f"{benchmark.group.title}: {here} of {len(benchmark.members)} are in the workspace"]
    if benchmark.members:
        lines += ["", _table([_row(member) for member in benchmark.members], "here")]
    if benchmark.info is not None:
        lines += ["", *_stored_lines(benchmark)]
    return run.say({**display.plain(benchmark), "id": benchmark.name}, "\n".join(lines).lstrip())


def _entry_lines(entry: Any) -> list[str]:
    text = "not stated" if entry.text_bytes is None else f"about {size(entry.text_bytes)} of text"
    cw = "not stated" if entry.cw is None else f"{entry.cw:.2f}"
    return [
        f"{entry.name}: {entry.title}",
        f"size: {_number(entry.documents)} documents, {_number(entry.queries)} queries ({entry.figures}), {text}",
        f"CW: {cw} · language: {entry.language} · split: {entry.split}",
        f"licence: {entry.licence} ({entry.licence_source})",
        *([f"from: {', '.join(entry.repos)}"] if entry.repos else []),
        *([f"note: {entry.note}"] if entry.note else []),
    ]


def _stored_lines(benchmark: Any) -> list[str]:
    info, manifest = benchmark.info, benchmark.manifest
    judged = ", ".join(f"{split} {n:,}" for split, n in info.judged.items())
    guessed = "" if manifest.language else " (guessed from its texts; benchmarks add PATH --language CODE sets it)"
    said = "" if benchmark.entry is None else benchmark.entry.note
    return [
        f"In the workspace as {info.name}: {info.n_documents:,} documents, judged queries: {judged}, "
        f"{size(info.bytes)}",
        f"language: {info.language or 'not detected, so its words are counted as English'}{guessed}",
        *([f"licence: {info.licence}"] if benchmark.entry is None and info.licence else []),
        *(f"read at {repo} {commit}" for repo, commit in manifest.commits.items()),
        *(f"note: {text}" for text in (*manifest.notes, *info.warnings) if text != said),
    ]


@command("benchmarks download", places=("benchmark",), job=True)
def download(run: Run, config: DownloadConfig) -> int:
    """Bring a benchmark, or all of a group, into the workspace."""
    from cdp.services import benchmarks

    benchmarks.check_download(config)
    known = benchmarks.show(run.workspace, config.benchmark)
    if known.entry is not None:
        note(*_entry_lines(known.entry))
    else:
        missing = [member for member in known.members if not member.here]
        total = sum(member.entry.text_bytes or 0 for member in missing)
        assert known.group is not None
        note(f"{known.group.title}: {len(missing)} to bring in, about {size(total)} of text")
        note(_table([_row(member) for member in missing]))
    return run.started(benchmarks.start_download(run.workspace, config))


@command("benchmarks add", project=())
def add(
    run: Run,
    path: Annotated[str, Reads(".zip"), "the folder or zip"],
    *,
    name: Annotated[str, "a name for it"] = "",
    language: Annotated[str, "code of its language (zh, en …); detected if omitted"] = "",
) -> int:
    """Take a folder or zip in BEIR layout into the workspace."""
    from cdp.services import benchmarks

    info = benchmarks.add(run.workspace, path, name=name, language=language)
    joined(run, benchmark=info.name)
    lines = _stored_lines(benchmarks.show(run.workspace, info.name))
    return run.say({**display.plain(info), "id": info.name}, "\n".join(lines))


@command("benchmarks sample")
def sample(
    run: Run,
    benchmark: Stored,
    *,
    queries: Annotated[int, "queries to draw"] = 50,
    documents: Annotated[int, "documents in all"] = 2000,
    split: Annotated[str, "the split to draw from"] = "",
    seed: Annotated[int, "another draw"] = 0,
    name: Annotated[str, "a name for it; says its size if omitted"] = "",
) -> int:
    """Draw a small subset, NAME-sample-50q-2000d: some queries, all that answers them, other documents."""
    from cdp.services import benchmarks

    info, existed = benchmarks.sample(
        run.workspace, benchmark, queries=queries, documents=documents, split=split, seed=seed, called=name
    )
    again = " (it was there already)" if existed else ""
    lines = [f"{info.name}: {info.n_queries:,} queries, {info.n_documents:,} documents{again}"]
    lines += [f"note: {text}" for text in info.warnings]
    return run.say({**display.plain(info), "id": info.name, "existed": existed}, "\n".join(lines))


@command("benchmarks delete")
def delete(run: Run, name: Stored) -> int:
    """Remove a benchmark from the workspace; results stay."""
    from cdp.services import benchmarks

    benchmarks.delete(run.workspace, name)
    return run.deleted(name, f"{name} is removed; results on it stay")
