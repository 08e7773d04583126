"""FlagEmbedding: JSONL with a query, its positives and its hard negatives on each line."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from cdp.corpus import get_documents
from cdp.query_sets import files, load
from cdp.query_sets.exports.base import Export, ExportSelection
from cdp.query_sets.store import scan

RANKED_ROWS = 512


def write(selection: ExportSelection, target: Path) -> int:
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


EXPORT = Export("flagembedding", "FlagEmbedding", "JSONL with query, pos and neg.", ".jsonl", write, order=30)
