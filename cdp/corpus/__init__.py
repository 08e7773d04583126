"""Documents in: one reader per format, checks that name every row not taken, storage as Parquet.

>>> with read_documents(path) as result:                     # doctest: +SKIP
...     manifest = store(result, "my documents", workspace)
>>> for document in iter_documents(workspace, manifest.id):  # doctest: +SKIP
...     ...

Defaults: JSONL, CSV, TSV and Parquet fields are found by their names, and rows stay whole; texts, Markdown, PDF, Word,
OpenDocument, slides, spreadsheets, web pages and EPUB are cut into passages; documents without ids are numbered by
their rows; a repeated id, an empty text and a passage that repeats another one are rejected and listed.
"""

from __future__ import annotations

from cdp.complexity.guessing import guess_language
from cdp.corpus.options import ReadOptions
from cdp.corpus.reading import read_documents
from cdp.corpus.storage import (
    CorpusManifest,
    delete_corpus,
    iter_documents,
    list_corpora,
    load_manifest,
    open_corpus,
    resolve_corpus,
    store,
)

__all__ = [
    "CorpusManifest", "ReadOptions", "delete_corpus", "guess_language", "iter_documents", "list_corpora",
    "load_manifest", "open_corpus", "read_documents", "resolve_corpus", "store",
]  # fmt: skip
