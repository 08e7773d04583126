"""Harder and easier benchmarks made of a stored one: its queries with few and with many content words.

All documents stay, so scores on the parts can be compared with the whole. The manifest says what was made of what, and
how; the same arguments give the same benchmark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdp.base.errors import ConfigError, InputError
from cdp.base.locks import staging
from cdp.base.workspace import Workspace, now
from cdp.benchmarks import BenchmarkInfo, library, manifests
from cdp.benchmarks.beir_files import iter_corpus, read_qrels, read_queries, write_beir
from cdp.benchmarks.benchmark import part, qrels_files, subset_note
from cdp.complexity import count_content_words

# Below this number a part's mean says nothing.
FEWEST = 10


def by_content_words(
    workspace: Workspace, name: str, edge: int, *, split: str = "", fewest: int = FEWEST
) -> list[BenchmarkInfo]:
    """Store two benchmarks: the judged queries with fewer content words than ``edge``, and the others.

    A part with fewer than ``fewest`` queries is left out. InputError where one part would be empty.
    """
    folder = library.resolve_benchmark(name, workspace)
    info = library.describe(folder, workspace)
    split = library.choose_split(info, split)
    texts, qrels = read_queries(part(folder, "queries")), read_qrels(qrels_files(folder)[split]).grades
    judged = [query for query, grades in qrels.items() if query in texts and max(grades.values(), default=0) > 0]
    counts = count_content_words([texts[query].text for query in judged], info.language or "en")

    parts = {
        f"0to{edge - 1}": [query for query, cw in zip(judged, counts, strict=True) if cw < edge],
        f"from{edge}": [query for query, cw in zip(judged, counts, strict=True) if cw >= edge],
    }
    if not all(parts.values()):
        raise InputError(f"Content words {edge} do not divide the queries of {name}.")

    return [_store(workspace, info, split, label, own) for label, own in parts.items() if len(own) >= fewest]


def _store(workspace: Workspace, whole: BenchmarkInfo, split: str, label: str, queries: Sequence[str]) -> BenchmarkInfo:
    """Write the part of a benchmark, or return the stored one; ConfigError where something else has its name."""
    called = f"{whole.name}-cw-{label}"
    target = workspace.benchmarks / called
    folder = library.resolve_benchmark(whole.name, workspace)
    known = manifests.read(folder)
    origin = {
        "kind": manifests.DERIVED, "of": whole.name, "hash": whole.content_hash, "split": split, "by": "cw",
        "range": label, "commits": known.commits,
    }  # fmt: skip

    if target.exists():
        if dict(manifests.read(target).source) != origin:
            raise ConfigError(f"The workspace has another benchmark called {called!r}.")
        return library.describe(target, workspace)

    texts, qrels = read_queries(part(folder, "queries")), read_qrels(qrels_files(folder)[split]).grades
    note = f"The queries of {whole.name} ({split}) with cw {label}, all documents."
    manifest = replace(
        known,
        entry="",
        title=f"{known.title or whole.name}: cw {label}",
        licence=known.licence or whole.licence,
        language=known.language or whole.language,
        source=origin,
        files=(),
        counts={},
        subset=None,  # a part of a subset stands for no whole benchmark
        notes=(note, *subset_note(known)),
        created=now(),
    )

    lines = [
        {"_id": query, "text": texts[query].text}
        | ({"excluded_ids": list(texts[query].excluded)} if texts[query].excluded else {})
        for query in queries
    ]
    with staging(workspace.benchmarks) as incoming:
        made_in = incoming / "derived"
        write_beir(made_in, iter_corpus(part(folder, "corpus")), lines, {split: {q: qrels[q] for q in queries}})
        manifests.write(made_in, manifest)
        made = library.install(library.survey(made_in, allow_unknown=manifest.allow_unknown), target, workspace)

    return made or library.describe(target, workspace)
