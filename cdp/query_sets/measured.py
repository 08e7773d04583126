"""Values of each query of a set that a model gave, kept: the rank of its own document, a cross-encoder's score.

They lie beside the set in ``measures/<kind>/<key>.npz``. The key is over the set's content, so what was measured of
another content is not found.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.workspace import Workspace, now, sha256_text, write_bytes
from cdp.query_sets.store import QuerySet, files, state

# Kinds of scores of every query: the rank of its own document, and how well a cross-encoder finds them to fit.
ROUND_TRIP, CROSS_ENCODER = "round-trip", "cross-encoder"


@dataclass(frozen=True)
class QueryScores:
    """One value per query of a set, in its order: ``values`` (n,) by ``by`` (bm25, a retriever, a cross-encoder)."""

    by: str
    values: NDArray[Any]
    created: str


def save_scores(workspace: Workspace, query_set: QuerySet, kind: str, by: str, values: NDArray[Any]) -> None:
    """Keep what a model says of each query of the set as it is now."""
    content = io.BytesIO()
    np.savez_compressed(content, values=values, by=np.array(by), created=np.array(now()))
    write_bytes(_path(workspace, query_set, kind, by), content.getvalue())


def load_scores(workspace: Workspace, query_set: QuerySet, kind: str, by: str) -> QueryScores | None:
    """What this model said of each query of the set as it is now; None where it was not asked."""
    return _read(_path(workspace, query_set, kind, by))


def list_scores(workspace: Workspace, query_set: QuerySet, kind: str) -> list[QueryScores]:
    """What was said of the set as it is now, the newest first; what was said of an earlier content is passed over."""
    there = ((path, _read(path)) for path in (files(workspace, query_set.id).measures / kind).glob("*.npz"))
    valid = [scores for path, scores in there if scores and path == _path(workspace, query_set, kind, scores.by)]
    return sorted(valid, key=lambda scores: (scores.created, scores.by), reverse=True)


def _path(workspace: Workspace, query_set: QuerySet, kind: str, by: str) -> Path:
    key = sha256_text("1", state(workspace, query_set), query_set.corpus_hash, by)[:16]
    return files(workspace, query_set.id).measures / kind / f"{key}.npz"


def _read(path: Path) -> QueryScores | None:
    """Return the scores in a file; None where there is none, or it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as columns:
            return QueryScores(str(columns["by"]), columns["values"], str(columns["created"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
