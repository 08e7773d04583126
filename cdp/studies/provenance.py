"""With what a study was run: versions of the libraries that decide its numbers, and whose texts it used."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import cdp
from cdp import query_sets
from cdp.base.workspace import Workspace
from cdp.corpus import load_manifest
from cdp.studies.plan import StudySource

LIBRARIES = ("torch", "transformers", "sentence-transformers", "numpy", "scipy", "bm25s", "nltk", "jieba", "fugashi",
             "kiwipiepy")  # fmt: skip


def versions() -> dict[str, str]:
    """{library: version} of what is installed, with Python and the product itself."""
    there = {"cdp": cdp.__version__, "python": platform.python_version(), "machine": platform.machine()}
    for name in LIBRARIES:
        try:
            there[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            there[name] = "not installed"
    return there


def licences(workspace: Workspace, sources: Sequence[StudySource]) -> list[dict[str, Any]]:
    """The corpus and the query set of each source: names, content hashes, who wrote the queries, licences."""
    facts = []
    for source in sources:
        query_set = query_sets.load(workspace, source.query_set)
        manifest = load_manifest(workspace, query_set.corpus_id)
        facts.append(
            {
                "source": source.label,
                "corpus": manifest.name,
                "corpus_hash": manifest.content_hash,
                "corpus_licence": manifest.licence,
                "documents": manifest.n_documents,
                "query_set": query_set.name,
                "query_set_hash": query_set.content_hash,
                "query_set_licence": query_set.licence,
                "written_by": query_set.written_by,
                "method": query_set.method,
                "generator": query_set.generator,
                "model": query_set.model,
                "language": query_set.language,
            }
        )
    return facts
