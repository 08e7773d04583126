"""Searching by hand: what each retriever retrieves for one query, over the documents of a corpus or a benchmark.

The engine holds what it needs in memory and answers within milliseconds. It lives in a process of its own
(``cdp.workers.search``), or for one answer in the process of whoever asks. Importing this loads no torch.
"""

from __future__ import annotations

from cdp.searching.collection import Collection, Documents, list_collections, open_documents, resolve_collection
from cdp.searching.engine import Engine, NotPreparedError, prepare

__all__ = [
    "Collection",
    "Documents",
    "Engine",
    "NotPreparedError",
    "list_collections",
    "open_documents",
    "prepare",
    "resolve_collection",
]
