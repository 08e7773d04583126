"""Query sets in the formats of other tools: BEIR, sentence-transformers, FlagEmbedding.

Each export streams over corpus and query set side by side (both are in corpus order) and appears whole or not at all.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from cdp.base.errors import ConfigError, InputError, NotFoundError, WorkspaceError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.corpus import get_documents, iter_documents
from cdp.query_sets import files, iter_lines, load
from cdp.query_sets.ordered import scan

Pairs = Iterator[tuple[Document, list[str]]]
ROWS = 8192
RANKED_ROWS = 512


def pairs(workspace: Workspace, query_set_id: str, per_doc: int | None = None) -> Pairs:
    """Each document that has queries with its first ``per_doc`` queries, in the order of the corpus."""
    query_set = load(workspace, query_set_id)
    documents = enumerate(iter_documents(workspace, query_set.corpus_id))
    for line in iter_lines(workspace, query_set_id):
        for position, document in documents:
            if position == line["position"]:
                yield document, line["queries"][:per_doc]
                break


def to_beir(found: Pairs, target: Path) -> int:
    """A folder with ``corpus.jsonl`` (the documents that have queries), ``queries.jsonl`` and ``qrels/train.tsv``."""
    (target / "qrels").mkdir(parents=True)
    n = 0
    with (
        open(target / "corpus.jsonl", "w", encoding="utf-8") as corpus,
        open(target / "queries.jsonl", "w", encoding="utf-8") as queries,
        open(target / "qrels" / "train.tsv", "w", encoding="utf-8") as qrels,
    ):
        qrels.write("query-id\tcorpus-id\tscore\n")
        for document, texts in found:
            record = {"_id": document.id, "title": document.title, "text": document.text}
            corpus.write(json.dumps(record, ensure_ascii=False) + "\n")
            for place, text in enumerate(texts, start=1):
                query_id = f"{document.id}-{place}"
                queries.write(json.dumps({"_id": query_id, "text": text}, ensure_ascii=False) + "\n")
                qrels.write(f"{query_id}\t{document.id}\t1\n")
                n += 1
    return n


def to_sentence_transformers(found: Pairs, target: Path) -> int:
    """A Parquet file with the columns ``anchor`` (the query) and ``positive`` (title and text of its document)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("anchor", pa.string()), ("positive", pa.string())])
    n = 0
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        rows: tuple[list[str], list[str]] = ([], [])
        for document, texts in found:
            rows[0].extend(texts)
            rows[1].extend([document.content] * len(texts))
            if len(rows[0]) >= ROWS:
                n += len(rows[0])
                writer.write_table(pa.table(list(rows), schema=schema))
                rows = ([], [])
        writer.write_table(pa.table(list(rows), schema=schema))
    return n + len(rows[0])


def to_flagembedding(found: Pairs, target: Path) -> int:
    """JSONL with ``query``, ``pos`` (its document) and ``neg`` (empty: the trainer takes in-batch negatives).

    A set of dragon_s_faithful has more to say, see ``ranked_to_flagembedding``.
    """
    n = 0
    with open(target, "w", encoding="utf-8") as file:
        for document, texts in found:
            for text in texts:
                file.write(json.dumps({"query": text, "pos": [document.content], "neg": []}, ensure_ascii=False) + "\n")
                n += 1
    return n


def ranked_to_flagembedding(workspace: Workspace, corpus_id: str, rankings: Path, target: Path) -> int:
    """JSONL of a set whose sentences were ranked: a line per teacher and sentence, in sequence, with its positives and
    hard negatives as texts. Documents are fetched in blocks.
    """
    n = 0
    records = scan(rankings)
    with open(target, "w", encoding="utf-8") as file:
        while block := [record for _, _, record in islice(records, RANKED_ROWS)]:
            wanted = {name for record in block for name in (*record["positives"], *record["negatives"])}
            texts = {name: found.content for name, found in get_documents(workspace, corpus_id, list(wanted)).items()}
            for record in block:
                line = {
                    "query": record["query"],
                    "pos": [texts[name] for name in record["positives"]],
                    "neg": [texts[name] for name in record["negatives"]],
                }
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                n += 1
    return n


FORMATS: dict[str, Callable[[Pairs, Path], int]] = {
    "beir": to_beir,
    "sentence-transformers": to_sentence_transformers,
    "flagembedding": to_flagembedding,
}
SUFFIXES = {"beir": "", "sentence-transformers": ".parquet", "flagembedding": ".jsonl"}
"""How a file of the format ends; BEIR is a folder."""


def export(workspace: Workspace, query_set_id: str, form: str, target: Path, *, per_doc: int | None = None) -> int:
    """Write a query set to ``target`` in one of ``FORMATS``; returns the number of queries written.

    InputError where ``target`` is there already: nothing is overwritten. ``per_doc`` keeps the first so many queries of
    each document; ConfigError below 1.
    """
    if per_doc is not None and per_doc < 1:
        raise ConfigError(f"At least 1 query per document must be exported, not {per_doc}.")
    if form not in FORMATS:
        raise NotFoundError("export format", form, known=list(FORMATS))
    if target.exists():
        raise _there_already(target)
    query_set = load(workspace, query_set_id)
    rankings = files(workspace, query_set_id).rankings
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        if form == "flagembedding" and rankings.exists():
            n = ranked_to_flagembedding(workspace, query_set.corpus_id, rankings, staging / target.name)
        else:
            n = FORMATS[form](pairs(workspace, query_set_id, per_doc), staging / target.name)
        _appear(staging / target.name, target)
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return n


def _appear(made: Path, target: Path) -> None:
    """Give what was made its name, unless something has come to bear it meanwhile."""
    try:
        if not made.is_dir():
            os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o666))
            os.replace(made, target)
        else:
            os.rename(made, target)  # never over a file, nor over a folder that holds anything
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR) and os.path.lexists(target):
            raise _there_already(target) from error
        raise


def _there_already(target: Path) -> InputError:
    return InputError(f"{target} is there already.", hint="Choose another name or remove it.")


def _unwritable(target: Path, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"{target} cannot be written: {error.strerror or error}.", hint="Choose another place, or make room there."
    )
