"""What a trained retriever has seen of a benchmark: the judged queries that are among its training queries.

Queries are compared by a hash of their words, so that case, punctuation and spacing hide nothing. A training keeps the
hashes of its queries beside its result (8 bytes each), and an evaluation writes what it finds into its own ``counts``:
the mark outlives the query set, the training and the benchmark.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base.errors import CdpError
from cdp.base.failures import Failures
from cdp.base.workspace import Workspace, read_json_or_none, write_bytes
from cdp.benchmarks import beir_files
from cdp.benchmarks.benchmark import part
from cdp.retrievers.trained import training_result

FILE = "query_hashes.npy"
LEAKAGE = "leakage"
"""Under this name the inputs of a job say which judged queries its queries were known to hold when it was started."""

Hashes = NDArray[np.uint64]

_BREAKS = re.compile(r"[\W_]+")
_LONGEST_CHAIN = 32


def words_of(text: str) -> str:
    """The text as it is compared: compatibility forms and case folded, words and numbers alone."""
    folded = text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return _BREAKS.sub(" ", folded).strip() or folded.strip()


def hashes(texts: Iterable[str]) -> Hashes:
    """One hash per text, shape (n_texts,), in their order."""
    encoded = (words_of(text).encode("utf-8", "surrogatepass") for text in texts)
    return np.frombuffer(
        b"".join(hashlib.blake2b(data, digest_size=8).digest() for data in encoded), dtype=np.uint64
    ).copy()


def n_shared(first: Hashes, second: Hashes) -> int:
    """How many distinct hashes are in both."""
    return len(np.intersect1d(first, second))


def query_texts(folder: Path, wanted: Collection[str] | None = None) -> Iterator[tuple[str, str]]:
    """(id, text) of a benchmark's queries, all or the wanted ones. A line that cannot be used is told by its check."""
    for _, line in beir_files.lines_of(part(folder, "queries")):
        try:
            fields = json.loads(line or "")
        except (ValueError, RecursionError):
            continue
        if isinstance(fields, dict):
            name = str(fields.get("_id", fields.get("id", "")))
            if wanted is None or name in wanted:
                yield name, str(fields.get("text", ""))


def write_hashes(results: Path, texts: Iterable[str]) -> None:
    """Write the hashes of a training's queries into its ``results`` folder, each once, ascending."""
    buffer = io.BytesIO()
    np.save(buffer, np.unique(hashes(texts)))
    write_bytes(results / FILE, buffer.getvalue())


def set_hashes(
    workspace: Workspace, query_set: str, per_doc: int | None = None, max_documents: int | None = None
) -> Hashes:
    """The hashes of a query set's queries: the first ones of its first documents, each once."""
    lines = islice(query_sets.read_queries(workspace, query_set, Failures()), max_documents)
    return np.unique(hashes(query for line in lines for query in line.queries[:per_doc]))


def chain(workspace: Workspace, retriever: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """(folder, ``spec.json``) of the training that made a retriever, then of the one that it started from, and so on;
    nothing for a retriever that was not trained here."""
    for _ in range(_LONGEST_CHAIN):
        try:
            folder = workspace.job(retriever)
        except CdpError:
            return
        spec = read_json_or_none(folder / "spec.json")
        if not isinstance(spec, dict) or spec.get("kind") != "training":
            return
        yield folder, spec
        retriever = str(spec["config"].get("retriever", ""))


def seen(workspace: Workspace, retriever: str) -> Hashes:
    """The hashes of all queries that a retriever was trained on, those of what it started from among them.

    A training of before hashes were kept is told by its query set, as long as that is there.
    """
    seen_hashes: list[Hashes] = [np.empty(0, dtype=np.uint64)]
    for folder, spec in chain(workspace, retriever):
        path = folder / "results" / FILE
        if path.is_file():
            seen_hashes.append(np.load(path))
            continue
        config = spec["config"]
        query_set = str(config.get("query_set", ""))
        if query_sets.exists(workspace, query_set):
            seen_hashes.append(set_hashes(workspace, query_set, config.get("per_doc"), config.get("max_documents")))
    return np.unique(np.concatenate(seen_hashes))


def counts(workspace: Workspace, retriever: str, judged_queries: Iterable[str]) -> dict[str, int]:
    """What an evaluation has to say of the retriever's training, zeros left out: ``leaked_queries`` (the judged queries
    it was trained on), ``leaked_training`` (1: it was allowed to see judged queries, of this benchmark or another), and
    ``steps_taken`` of ``steps_planned`` where it was stopped."""
    trainings = list(chain(workspace, retriever))
    if not trainings:
        return {}
    counted = {
        "leaked_queries": n_shared(seen(workspace, retriever), hashes(judged_queries)),
        "leaked_training": int(any(spec.get("inputs", {}).get(LEAKAGE) for _, spec in trainings)),
    }
    result = training_result(trainings[0][0])
    if result is not None and result.get("stopped"):
        counted |= {"steps_taken": int(result["steps"]), "steps_planned": int(result["steps_planned"])}
    return {name: n for name, n in counted.items() if n or name == "steps_taken"}


def marks(counts: Mapping[str, Any]) -> tuple[str, ...]:
    """What ``counts`` says in the words of a badge: ``leaked``, ``stopped at step 1 of 116``."""
    words = []
    if counts.get("leaked_queries") or counts.get("leaked_training"):
        words.append("leaked")
    if "steps_planned" in counts:
        words.append(f"stopped at step {counts.get('steps_taken', 0):,} of {counts['steps_planned']:,}")
    return tuple(words)


def remarks(counts: Mapping[str, Any], judged: int) -> list[str]:
    """The same in sentences."""
    sentences = []
    if counts.get("leaked_queries"):
        sentences.append(f"Leaked: {counts['leaked_queries']:,} of the {judged:,} judged queries were trained on.")
    elif counts.get("leaked_training"):
        sentences.append("Leaked: this training was allowed to see queries that a benchmark of its evaluation judges.")
    if "steps_planned" in counts:
        step, planned = counts.get("steps_taken", 0), counts["steps_planned"]
        sentences.append(f"The training was stopped at step {step:,} of {planned:,}: this is no score of a whole one.")
    return sentences
