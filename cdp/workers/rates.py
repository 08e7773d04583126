"""How fast this machine is at each stage, by the key of a rate (``cdp.planning``).

    python -m cdp.workers.rates '{"retriever": "", "began": SECONDS SINCE 1970}'

It prints one JSON object: lists of [amount, seconds, mean characters].

Small real work by the stages' own functions, on the demo's documents, in a temporary folder that is gone afterwards. No
job: it takes half a minute and is asked for by hand.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.failures import failure_of
from cdp.base.records import Document
from cdp.base.scratch import scratch
from cdp.base.workspace import SHIPPED_DATA, Workspace
from cdp.benchmarks import load_benchmark
from cdp.corpus import ReadOptions, read_documents, store
from cdp.evaluation import bm25
from cdp.metrics.query_set import measure_query_set
from cdp.planning.timing import STARTING
from cdp.planning.workload import CPU, GPU
from cdp.query_sets import import_queries
from cdp.retrievers import load, resolve
from cdp.retrievers.encode import Encoding, encode
from cdp.retrievers.exact_search import search
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators.template import TemplateGenerator
from cdp.synthesis.methods import METHODS
from cdp.training.data import prepare
from cdp.training.measure import measure

Observed = dict[str, list[list[float | None]]]

REPEATS = 3
READ, WRITTEN, PER_DOC, INDEXED, TRAINED, DISTINCT = 20_000, 240, 5, 6000, 2000, 96
STATIC_TEXTS, TEXTS = 4000, 64
COPIES = 10
STATIC_STEPS, STEPS = 20, 3
ROWS, DIMENSIONS, QUERIES = 50_000, 384, 512
METHOD = "diverse"


def some_documents(n: int) -> list[Document]:
    """The demo's documents over and over, each in its own words as far as a number is one."""
    texts = load_benchmark(SHIPPED_DATA / "demo", "test").documents
    return [Document(f"d{at}", text=f"{texts[at % len(texts)]} Note {at}.") for at in range(n)]


def main(words: list[str]) -> int:
    """0 and the record on stdout, or 2 and one sentence on stderr."""
    try:
        asked = json.loads(words[0])
        imported = time.time() - float(asked["began"])
        observed: Observed = defaultdict(list)
        with tempfile.TemporaryDirectory(dir=scratch()) as folder:
            loading = measure_all(Path(folder), str(asked["retriever"]), observed)
        observed[STARTING] = [[1.0, imported + loading, None]]
        print(json.dumps(observed))
    except CdpError as error:
        print(error, file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        failure = failure_of(error)
        print(f"{failure['message']} {failure['hint']}", file=sys.stderr)
        return 2
    return 0


def measure_all(folder: Path, retriever: str, observed: Observed) -> float:
    """Measure everything; how long it took to load the first model."""
    workspace, documents = Workspace(folder / "workspace"), some_documents(READ)
    written = _written(documents[:WRITTEN], observed)
    corpus = _read(workspace, folder, documents, observed)
    _index([d.content for d in documents[:INDEXED]], observed)
    _search(observed)
    pairs = [(documents[at].id, queries) for at, queries in enumerate(written * (TRAINED // WRITTEN))]
    query_set = import_queries(pairs, workspace, corpus, name="measured").query_set.id
    names = dict.fromkeys(["static-minilm", *([retriever] if retriever else [])])
    texts = [d.content for d in documents]
    loading = {name: _model(workspace, name, query_set, texts, observed) for name in names}
    return loading["static-minilm"]


def _time(observed: Observed, key: str, amount: float, length: float | None, work: Callable[[], Any]) -> Any:
    """Do it ``REPEATS`` times after once unmeasured, whose result comes back."""
    result = work()
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        observed[key].append([amount, time.perf_counter() - start, length])
    return result


def _written(documents: list[Document], observed: Observed) -> list[list[str]]:
    """Queries of the template generator, then their measures."""
    source, method = TemplateGenerator(), METHODS[METHOD]

    def write() -> list[list[str]]:
        return [list(generate_for(d, method, PER_DOC, source).queries) for d in documents]

    length = sum(len(d.content) for d in documents) / len(documents)
    queries: list[list[str]] = _time(observed, f"synthesis/template/{CPU}", len(documents), length, write)
    named = [(d.id, own) for d, own in zip(documents, queries, strict=True)]
    several = named * COPIES  # a single pass over so few is mostly what it begins and ends with
    amount = sum(len(own) for _, own in several)
    _time(observed, f"measures/{PER_DOC}", amount, None, lambda: measure_query_set(several))
    return queries


def _read(workspace: Workspace, folder: Path, documents: list[Document], observed: Observed) -> str:
    """Reading a file of documents and storing them as Parquet; the corpus's id."""
    characters = float(sum(len(d.content) for d in documents))
    turn = itertools.count()

    def read() -> str:
        target = Workspace(workspace.root / str(next(turn)))
        return stored(target, folder, documents)

    _time(observed, "reading", characters, characters / len(documents), read)
    distinct = documents[:DISTINCT]  # of documents that repeat each other Parquet keeps next to nothing
    small = Workspace(workspace.root / "distinct")
    kept = sum(path.stat().st_size for path in small.corpus(stored(small, folder, distinct)).iterdir())
    observed["size/corpus"] = [[float(kept), float(sum(len(d.content) for d in distinct)), None]]
    return stored(workspace, folder, documents)


def stored(workspace: Workspace, folder: Path, documents: list[Document]) -> str:
    """Documents as a corpus, through a file as a user has one; its id."""
    source = folder / "documents.jsonl"
    rows = ({"id": d.id, "title": d.title, "text": d.text} for d in documents)
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    workspace.corpora.mkdir(parents=True, exist_ok=True)
    with read_documents(source, options=ReadOptions(), scratch=folder) as result:
        return store(result, "measured", workspace, source=source.name).id


def _index(texts: list[str], observed: Observed) -> None:
    characters = float(sum(map(len, texts)))
    made = _time(observed, "bm25", characters, characters / len(texts), lambda: bm25.index(texts))
    observed["size/bm25"] = [[float(bm25.index_size(made)), characters, None]]


def _search(observed: Observed) -> None:
    """Random vectors take as long as any others; documents in the precision in which that device keeps them."""
    draw = np.random.default_rng(0)
    documents = draw.standard_normal((ROWS, DIMENSIONS), dtype=np.float32)
    asked = draw.standard_normal((QUERIES, DIMENSIONS), dtype=np.float32)
    devices = [CPU, *([GPU] if _gpu() else [])]
    for device in devices:
        where, precision = ("cuda", np.float16) if device == GPU else ("cpu", np.float32)
        rows = documents.astype(precision, copy=False)
        products = float(ROWS) * DIMENSIONS * QUERIES
        _time(observed, f"search/{device}", products, None, partial(search, asked, rows, 100, device=where))


def _model(workspace: Workspace, name: str, query_set: str, texts: list[str], observed: Observed) -> float:
    """Encoding and a few training steps, on a GPU where there is one; how long it took to load the model."""
    began = time.perf_counter()
    retriever = resolve(name, workspace)
    static = retriever.preset is not None and retriever.preset.kind == "static"
    device = GPU if _gpu() and not static else CPU
    model = load(retriever, "cuda" if device == GPU else "cpu")
    loading = time.perf_counter() - began
    some = texts[: STATIC_TEXTS if static else TEXTS]
    length = sum(map(len, some)) / len(some)
    encoding = Encoding("", "document")
    _time(observed, f"encoding/{name}/{device}", len(some), length, lambda: encode(model, some, encoding))
    config = TrainingConfig(query_set=query_set, retriever=name, gpus=None if device == GPU else 0)
    data = prepare(config, workspace)
    measured = measure(data, STATIC_STEPS if static else STEPS)
    pairs = float(data.settings.batch_size or 1) * measured.steps
    # Each text is tokenised once, before the first epoch: this is a pair's share of it, and of its document's.
    tokenising = measured.tokenise_seconds_per_text * (1 + 1 / PER_DOC) / (data.settings.epochs or 1)
    seconds = measured.step_seconds * measured.steps + pairs * tokenising
    observed[f"training/{name}/{device}"] = [[pairs, seconds, length]]
    return loading


def _gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
