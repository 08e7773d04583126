"""The built-in export formats: BEIR, sentence-transformers, FlagEmbedding and OpenAI Batch."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from cdp.corpus import get_documents
from cdp.query_sets import files, load, plain_form, shared_queries
from cdp.query_sets.exports import Export, ExportSelection
from cdp.query_sets.store import scan

RANKED_ROWS = 512
ROWS = 8192


def _write_beir(selection: ExportSelection, target: Path) -> int:
    """A folder with ``corpus.jsonl`` (the documents that have queries), ``queries.jsonl`` and ``qrels/train.tsv``.

    A query that several documents have is written once, with all of them as relevant.
    """
    (target / "qrels").mkdir(parents=True)
    shared = shared_queries(selection.workspace, selection.query_set)
    id_of: dict[str, str] = {}
    n = 0
    with (
        open(target / "corpus.jsonl", "w", encoding="utf-8") as corpus,
        open(target / "queries.jsonl", "w", encoding="utf-8") as queries,
        open(target / "qrels" / "train.tsv", "w", encoding="utf-8") as qrels,
    ):
        qrels.write("query-id\tcorpus-id\tscore\n")
        for document, texts in selection.pairs():
            record = {"_id": document.id, "title": document.title, "text": document.text}
            corpus.write(json.dumps(record, ensure_ascii=False) + "\n")
            for rank, text in enumerate(texts, start=1):
                plain, query_id = plain_form(text), f"{document.id}-{rank}"
                if plain in shared:
                    query_id = id_of.setdefault(plain, query_id)
                if query_id == f"{document.id}-{rank}":
                    queries.write(json.dumps({"_id": query_id, "text": text}, ensure_ascii=False) + "\n")
                    n += 1
                qrels.write(f"{query_id}\t{document.id}\t1\n")
    return n


BEIR = Export(
    "beir", "BEIR", "A folder with corpus.jsonl, queries.jsonl and qrels/train.tsv.", "-beir", _write_beir, order=10
)


def _write_pairs(selection: ExportSelection, target: Path) -> int:
    """A Parquet file with the columns ``anchor`` (the query) and ``positive`` (title and text of its document)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("anchor", pa.string()), ("positive", pa.string())])
    n = 0
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        rows: tuple[list[str], list[str]] = ([], [])
        for document, texts in selection.pairs():
            rows[0].extend(texts)
            rows[1].extend([document.content] * len(texts))
            if len(rows[0]) >= ROWS:
                n += len(rows[0])
                writer.write_table(pa.table(list(rows), schema=schema))
                rows = ([], [])
        writer.write_table(pa.table(list(rows), schema=schema))
    return n + len(rows[0])


SENTENCE_TRANSFORMERS = Export(
    "sentence-transformers",
    "sentence-transformers",
    "A Parquet file with the columns anchor and positive.",
    ".parquet",
    _write_pairs,
    order=20,
)


def _write_flagembedding(selection: ExportSelection, target: Path) -> int:
    """JSONL with ``query``, ``pos`` (its document) and ``neg`` (empty: the trainer takes in-batch negatives).

    A set of dragon_s_faithful has more to say, see ``_write_ranked``.
    """
    rankings = files(selection.workspace, selection.query_set).rankings
    if rankings.exists():
        return _write_ranked(selection, rankings, target)
    n = 0
    with open(target, "w", encoding="utf-8") as file:
        for document, texts in selection.pairs():
            for text in texts:
                file.write(json.dumps({"query": text, "pos": [document.content], "neg": []}, ensure_ascii=False) + "\n")
                n += 1
    return n


def _write_ranked(selection: ExportSelection, rankings: Path, target: Path) -> int:
    """JSONL of a set whose sentences were ranked: a line per teacher and sentence, in sequence, with its positives and
    hard negatives as texts. Documents are fetched in blocks.
    """
    corpus_id = load(selection.workspace, selection.query_set).corpus_id
    n = 0
    records = scan(rankings)
    with open(target, "w", encoding="utf-8") as file:
        while block := [record for _, _, record in islice(records, RANKED_ROWS)]:
            wanted = {name for record in block for name in (*record["positives"], *record["negatives"])}
            documents = get_documents(selection.workspace, corpus_id, list(wanted))
            texts = {name: document.content for name, document in documents.items()}
            for record in block:
                line = {
                    "query": record["query"],
                    "pos": [texts[name] for name in record["positives"]],
                    "neg": [texts[name] for name in record["negatives"]],
                }
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                n += 1
    return n


FLAG_EMBEDDING = Export(
    "flagembedding", "FlagEmbedding", "JSONL with query, pos and neg.", ".jsonl", _write_flagembedding, order=30
)

# Not the queries but the requests that write them: ``cdp.synthesis.batch`` makes the file.
OPENAI_BATCH = Export(
    "openai-batch",
    "OpenAI Batch",
    "The requests that write this set, for the Batch API or vllm run-batch.",
    "-batch",
    order=40,
)
