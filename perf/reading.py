"""How fast are documents read with every check, against `datasets` and BEIR's loader, and in how much memory?

Ours is all of `read_documents`: each row checked and every bad one listed with its line, repeated ids found, lengths,
words and languages counted, a content hash, and the documents as Parquet on the disk. `datasets` reads the same JSON
Lines with Arrow and then makes the same checks and counts in plain Python; so does what BEIR's `GenericDataLoader` does
(a line at a time into one dictionary; beir itself is not installed, for it brings retrieval engines along). Bare, that
loop checks nothing and keeps all in memory. CSV and Parquet are compared with the plain reader of each and the same
checks. Times are CPU seconds of all threads and child processes, in turns; one row is of the clock.

The memory is the peak of a process that reads a million documents; its limit is 1 GB.

    python -m perf reading
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from cdp.base.workspace import REPOSITORY, SHIPPED_DATA
from cdp.corpus import read_documents
from cdp.corpus.documents import count_words
from perf.machine import peak_mib
from perf.timing import Row, cpu_seconds, paired, seconds, show

MANY, SOME, REPEATS = 1_000_000, 30_000, 3
WORDS = 80
LIMIT_MIB = 1e9 / 2**20
SCIFACT = REPOSITORY.parent / "shared" / "data" / "scifact" / "corpus.jsonl.gz"
BAD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


def write(path: Path, documents: int) -> None:
    """Parts of SciFact's abstracts, or of the demo's documents, with a bad row in every ten thousand."""
    draw = random.Random(0)
    if SCIFACT.exists():
        with gzip.open(SCIFACT, "rt", encoding="utf-8") as lines:
            given = [json.loads(line) for line in lines]
    else:
        given = [json.loads(line) for line in (SHIPPED_DATA / "demo" / "corpus.jsonl").read_text("utf-8").splitlines()]
    split = [(line["title"], line["text"].split()) for line in given]
    with open(path, "w", encoding="utf-8") as file:
        for i in range(documents):
            title, words = split[i % len(split)]
            start = draw.randrange(max(1, len(words) - WORDS))
            text = "" if i % 10_000 == 9_999 else " ".join(words[start : start + WORDS])
            file.write(json.dumps({"_id": f"d{i}", "title": title, "text": text}, ensure_ascii=False) + "\n")


def ours(path: Path) -> tuple[int, str]:
    """(documents, content hash)."""
    with read_documents(path, scratch=path.parent) as result:
        return result.n_documents, result.content_hash


def checked(documents: Iterable[dict[str, str | None]]) -> tuple[int, str]:
    """The same, by checks as one writes them."""
    seen: set[str] = set()
    rejected: list[str] = []
    characters, words, digest = [], [], hashlib.sha256()
    for line in documents:
        id, title, text = line["_id"], line["title"] or "", line["text"]
        if not isinstance(id, str) or not id.strip() or len(id) > 512 or BAD.search(id):
            rejected.append("unusable id")
        elif not isinstance(text, str) or not text.strip() or len(text) > 10_000_000:
            rejected.append("unusable text")
        elif id in seen:
            rejected.append("duplicate id")
        else:
            seen.add(id)
            title, text = UNSTORABLE.sub("\ufffd", title), UNSTORABLE.sub("\ufffd", text)
            characters.append(len(text))
            words.append(count_words(text))

            for part in (id, title, text):
                data = part.encode()
                digest.update(f"{len(data)}:".encode())
                digest.update(data)

    return len(seen), digest.hexdigest()


def by_datasets(path: Path) -> Iterator[dict[str, str | None]]:
    """Read with `datasets`, its Arrow file beside the input."""
    import datasets

    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory(dir=path.parent) as cache:
        yield from datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=cache)


def by_beir(path: Path) -> dict[str, dict[str, str | None]]:
    """What BEIR's GenericDataLoader does with a corpus."""
    corpus = {}
    with open(path, encoding="utf8") as file:
        for line in file:
            value = json.loads(line)
            corpus[value.get("_id")] = {"text": value.get("text"), "title": value.get("title")}
    return corpus


def in_other_formats(path: Path) -> dict[str, Path]:
    """The same documents as CSV and Parquet, by ending."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    documents = by_beir(path)
    tables = {ending: path.with_suffix(f".{ending}") for ending in ("csv", "parquet")}
    with open(tables["csv"], "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["_id", "title", "text"])
        writer.writerows([id, values["title"], values["text"]] for id, values in documents.items())
    columns = {"_id": list(documents)} | {name: [v[name] for v in documents.values()] for name in ("title", "text")}
    pq.write_table(pa.table(columns), tables["parquet"])
    return tables


def by_csv(path: Path) -> Iterator[dict[str, str | None]]:
    """Read with Python's `csv`."""
    with open(path, encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def by_pyarrow(path: Path) -> Iterator[dict[str, str | None]]:
    """Read with `pyarrow`, a row group's rows in memory."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield from batch.to_pylist()


def run() -> list[Row]:
    """The peers of each format, and the memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, many = folder / "some.jsonl", folder / "many.jsonl"
        write(path, SOME)

        peers = {
            "datasets + the same checks": lambda: checked(by_datasets(path)),
            "BEIR's loop + the same checks": lambda: checked(
                {"_id": id, **values} for id, values in by_beir(path).items()
            ),
        }
        for peer in peers.values():
            assert peer() == ours(path)

        peers["BEIR's loop alone, nothing checked"] = partial(by_beir, path)

        rows = []
        for title, peer in peers.items():
            times = [(cpu_seconds(partial(ours, path)), cpu_seconds(peer)) for _ in range(REPEATS)]
            rows.append(
                paired(f"reading documents, CPU, {title}", *zip(*times, strict=True), amount=SOME, unit="documents",
                       target=1.4 if "BEIR's loop +" in title else 1.0)
            )  # fmt: skip

        loop = peers["BEIR's loop + the same checks"]
        clock = [(seconds(partial(ours, path)), seconds(loop)) for _ in range(REPEATS)]
        rows.append(
            paired("reading documents, clock, BEIR's loop + the same checks", *zip(*clock, strict=True), amount=SOME,
                   unit="documents", target=2.0)
        )  # fmt: skip

        tables = in_other_formats(path)
        for ending, title, plain in (("csv", "csv", by_csv), ("parquet", "pyarrow", by_pyarrow)):
            mine = partial(ours, tables[ending])
            peer = partial(lambda plain, table: checked(plain(table)), plain, tables[ending])
            assert peer() == mine()
            times = [(cpu_seconds(mine), cpu_seconds(peer)) for _ in range(REPEATS)]
            rows.append(
                paired(f"reading documents, CPU, {ending.upper()}, {title} + the same checks",
                       *zip(*times, strict=True), amount=SOME, unit="documents", target=1.4)
            )  # fmt: skip

        write(many, MANY)
        peaks = [_in_a_process(many, side) for side in ("ours", "peer")]

    rows += [
        paired(f"reading a million documents, peak memory, {title}", [peaks[0]], [peer], unit="MiB", target=1.0)
        for title, peer in (("1 GB", LIMIT_MIB), ("BEIR's loop", peaks[1]))
    ]  # fmt: skip

    show(rows)
    return rows


def _in_a_process(path: Path, side: str) -> float:
    """The peak of resident memory in MiB."""
    done = subprocess.run(
        [sys.executable, "-m", "perf.reading", side, str(path)], cwd=REPOSITORY, capture_output=True, text=True,
        check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return float(done.stdout)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        {"ours": ours, "peer": by_beir}[sys.argv[1]](Path(sys.argv[2]))
        print(peak_mib())
    else:
        run()
