"""Commands on benchmarks: the registry, downloads, subsets, judging, labelling by keys in a terminal."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

from cdp.base.config import DownloadConfig, JudgeConfig
from cdp.base.text import counted, name_and_split, size, tally, written
from cdp.benchmarks import BenchmarkInfo
from cdp.benchmarks.schemas import Entry
from cdp.cli import answers
from cdp.cli.answers import Run, note
from cdp.cli.declare import Reads, command
from cdp.cli.projects import brought, joined
from cdp.evaluation import labelling as labels
from cdp.services import adding, benchmarks, jobs, judging
from cdp.services.benchmarks import BenchmarkDetails

Stored = Annotated[str, "a benchmark of the workspace"]
OfSplit = Annotated[str, "a benchmark of the workspace, perhaps NAME:SPLIT"]


@command("benchmarks list")
def list_(run: Run) -> int:
    """The registry and the workspace's own benchmarks, with sizes, licences and CW."""
    names = ("name", "title", "documents", "queries", "text_bytes", "cw", "figures", "language", "licence", "groups")
    registry = benchmarks.list_registry(run.workspace)
    rows = [{**answers.picked(entry, names), "stored": stored} for entry, stored in registry]
    own = benchmarks.list_own(run.workspace)
    mine = [answers.plain(info, note=info.note) for info in own]

    columns = ("name", "documents", "queries", "cw", "licence", "groups", "language", "stored")
    parts = [answers.table(rows, columns)]
    if own:
        parts.append(f"Of your own:\n{answers.table(mine, ('name', 'n_documents', 'n_queries', 'splits', 'note'))}")
    parts.append("CW: mean content words of a query. Details of one: benchmarks show NAME")
    return run.say({"registry": rows, "own": own}, "\n\n".join(parts))


@command("benchmarks show")
def show(run: Run, name: Annotated[str, "a benchmark of the registry or the workspace"]) -> int:
    """One benchmark: size, licence, protocol, source."""
    benchmark = benchmarks.show(run.workspace, name)
    view: dict[str, Any] = {}
    if benchmark.entry is not None:
        view |= _entry(benchmark.entry)
    if benchmark.info is not None:
        view |= _stored(benchmark, benchmark.info)
    return run.say(answers.plain(benchmark, id=benchmark.name), view)


def _entry(entry: Entry) -> dict[str, Any]:
    documents = written(entry.documents, lambda n: counted(n, "document"), "documents not stated")
    queries = written(entry.queries, lambda n: counted(n, "query", "queries"), "queries not stated")
    text = written(entry.text_bytes, lambda n: f"about {size(n)} of text", "size not stated")

    return {
        entry.name: entry.title,
        "size": f"{documents}, {queries} ({entry.figures}), {text}",
        "CW": written(entry.cw, "{:.2f}".format, "not stated"),
        "language": entry.language,
        "split": entry.split,
        "licence": f"{entry.licence} ({entry.licence_source})",
        "from": ", ".join(entry.repos),
        "note": entry.note,
    }


def _stored(benchmark: BenchmarkDetails, info: BenchmarkInfo) -> dict[str, Any]:
    manifest, entry = benchmark.manifest, benchmark.entry
    assert manifest is not None
    language = info.language or "not detected, so its words are counted as English"
    if not manifest.language:
        language += " (guessed from its texts; benchmarks add PATH --language CODE sets it)"

    view = {
        "in the workspace as": f"{info.name}: {counted(info.n_documents, 'document')}, {size(info.bytes)}",
        "judged queries": tally(info.judged, "{} {:,}"),
        "language": language,
    }
    if entry is None:
        view["licence"] = info.licence

    view["read at"] = ", ".join(map(" ".join, manifest.commits.items()))
    notes = [entry.note if entry else "", *manifest.notes, *info.warnings]
    return {**view, "note": [*filter(None, notes)]}


@command("benchmarks download", places=("benchmark",), job=True)
def download(run: Run, config: DownloadConfig) -> int:
    """Bring a benchmark of the registry into the workspace."""
    jobs.prepared(run.workspace, "download", config)
    entry = benchmarks.show(run.workspace, config.benchmark).entry
    assert entry is not None
    note(answers.shown(_entry(entry)))
    return run.started(jobs.start(run.workspace, "download", config))


@command("benchmarks add", project=())
def add(
    run: Run,
    path: Annotated[str, Reads(".zip"), "the folder or zip; with --corpus a table"],
    *,
    corpus: Annotated[str, "take a table of queries, each with the ID of its document in this corpus"] = "",
    name: Annotated[str, "a name for it"] = "",
    language: Annotated[str, "code of its language (zh, en …); detected if omitted"] = "",
) -> int:
    """Take a folder or zip in BEIR layout, or with tables as MTEB has them, or queries for documents that are here."""
    if corpus:
        done = adding.add_queries(run.workspace, corpus, path, name=name, language=language)
        assert done.benchmark is not None
        return run.say(answers.plain(done, id=done.benchmark.name), brought(done))

    info = benchmarks.add(run.workspace, path, name=name, language=language)
    joined(run, benchmarks=[info.name])
    return run.say(answers.plain(info, id=info.name), _stored(benchmarks.show(run.workspace, info.name), info))


@command("benchmarks sample")
def sample(
    run: Run,
    benchmark: OfSplit,
    *,
    queries: Annotated[int, "queries to draw"] = 50,
    documents: Annotated[int, "documents in all"] = 2000,
    split: Annotated[str, "the split to draw from"] = "",
    seed: Annotated[int, "another draw"] = 0,
    name: Annotated[str, "a name for it; says its size if omitted"] = "",
) -> int:
    """Draw a small subset, NAME-sample-50q-2000d: some queries, all that answers them, other documents."""
    benchmark, split = name_and_split(benchmark, split)
    info, existed = benchmarks.sample(
        run.workspace, benchmark, queries=queries, documents=documents, split=split, seed=seed, called=name
    )
    value = answers.plain(info, id=info.name, existed=existed)
    view = {name: value[name] for name in ("id", "n_queries", "n_documents", "existed", "warnings")}

    return run.say(value, view)


@command("benchmarks delete")
def delete(run: Run, name: Stored) -> int:
    """Remove a benchmark from the workspace; results stay."""
    benchmarks.delete(run.workspace, name)
    return run.deleted(name, "results on it stay")


@command("benchmarks export")
def export(
    run: Run,
    name: OfSplit,
    *,
    out: Annotated[str, "the new folder, or the file of qrels"],
    format: Annotated[
        Literal["beir", "mteb", "trec-qrels"], "a folder in BEIR layout, one that MTEB loads, or one split's TREC qrels"
    ] = "beir",
    split: Annotated[str, "of TREC qrels: the split; test, or the only one, if omitted"] = "",
) -> int:
    """Write a benchmark for other programs."""
    name, split = name_and_split(name, split)
    path, notes = benchmarks.export(run.workspace, name, format, out, split=split)
    return run.say({"id": name, "path": str(path), "notes": notes}, "\n".join([f"{name} is written to {path}", *notes]))


@command("benchmarks judge", project=("corpus",), instead="benchmark", job=True)
def judge(run: Run, config: JudgeConfig) -> int:
    """Have a model, or people, judge what retrievers find for target queries: a benchmark like any other."""
    planned = judging.plan(run.workspace, config)
    if planned.log:
        note(planned.log.sentence)
    note(planned.sentence, *planned.warnings)
    return run.started(judging.start(run.workspace, config))


KEYS = "0, 1, 2, 3 · u unsure · n nothing here answers it · b back · q quit"


@command("benchmarks label")
def label(
    run: Run, name: Stored, *, by: Annotated[str, "your name or initials; without it the state is shown"] = ""
) -> int:
    """Label whole queries of a benchmark that is judged here, one key and Enter per passage; says how judges agree."""
    if by:
        _label(run, name, by)
    done = labels.progress(run.workspace, name)
    rows = [{**row, "same": f"{row['same']:.0%}"} for row in answers.plain(list(done.agreements))]
    table = answers.table(rows, ["first", "second", "pairs", "same", "kappa", "weighted"], "no pair was graded by two")
    return run.say({**answers.plain(done), "id": name}, f"{done.sentence}\n{done.judged}\n\n{table}")


def _label(run: Run, name: str, by: str) -> None:
    """Ask for one passage after the other on standard input until there is none, or the input ends."""
    words = {"u": "unsure", "n": labels.NOTHING, "b": labels.UNDO, **{str(g): str(g) for g in range(4)}}
    task = labels.task(run.workspace, name, by)
    note(KEYS, *(f"{grade}: {meaning}" for grade, meaning in labels.MEANINGS.items()))

    while task is not None:
        passage = task.open[0]
        at = task.proposed - len(task.open) + 1
        note(f"\n{task.finished} of {task.total} · {task.text}", f"[{at}/{task.proposed}] {passage.title}",
             passage.text)  # fmt: skip

        answer = sys.stdin.readline()
        key = answer.strip().lower()
        if not answer or key == "q":
            return

        if key in words:
            judging.answer(run.workspace, name, by, task, words[key])
        else:
            note(f"{key!r} is no key. {KEYS}")
        task = labels.task(run.workspace, name, by)
