"""What was measured of a query set: beside it, by measures that need no model, and by metrics jobs.

Jobs write these files; this module reads them. Columns of one value per query lie in
``measures/<kind>/<key>.npz``: the key is over the set's content, so what was measured of another content is not found.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import WorkspaceError
from cdp.base.workspace import Workspace, now, sha256_text, write_bytes
from cdp.query_sets.store import QuerySet, files, state

# Kinds of scores of every query: the rank of its own document, and how well a cross-encoder finds them to fit.
ROUND_TRIP, CROSS_ENCODER = "round-trip", "cross-encoder"


def quick_file(workspace: Workspace, query_set: str, key: str) -> Path:
    """Where the quick measures under this key lie; the values of each document are beside it, as ``.npz``."""
    return files(workspace, query_set).measures / f"{key}.json"


def save_columns(
    workspace: Workspace, query_set: str, kind: str, key: str, columns: Mapping[str, NDArray[Any]]
) -> None:
    """Keep columns of a set. A read-only workspace keeps nothing, and is measured again."""
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **columns)
    try:
        write_bytes(columns_file(workspace, query_set, kind, key), content.getvalue())
    except WorkspaceError:
        if os.access(workspace.root, os.W_OK):
            raise


def load_columns(workspace: Workspace, query_set: str, kind: str, key: str) -> dict[str, NDArray[Any]] | None:
    """The columns under this key; None where there are none, or their file is damaged."""
    try:
        with np.load(columns_file(workspace, query_set, kind, key), allow_pickle=False) as columns:
            return {name: columns[name] for name in columns.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def columns_file(workspace: Workspace, query_set: str, kind: str, key: str) -> Path:
    """Where columns of this kind are kept under this key, whether they are there or not."""
    return files(workspace, query_set).measures / kind / f"{key}.npz"


@dataclass(frozen=True)
class QueryScores:
    """One value per query of a set, in its order: ``values`` (n,) by ``by`` (bm25, a retriever, a cross-encoder)."""

    kind: str
    by: str
    values: NDArray[Any]
    created: str


def save_scores(workspace: Workspace, query_set: QuerySet, kind: str, by: str, values: NDArray[Any]) -> None:
    """Keep what a model says of each query of the set as it is now."""
    about = {"by": np.array(by), "created": np.array(now())}
    save_columns(workspace, query_set.id, kind, _scores_key(workspace, query_set, by), {"values": values, **about})


def load_scores(workspace: Workspace, query_set: QuerySet, kind: str, by: str) -> QueryScores | None:
    """What this model said of each query of the set as it is now; None where it was not asked."""
    return _scores(workspace, query_set, kind, _scores_key(workspace, query_set, by))


def list_scores(workspace: Workspace, query_set: QuerySet, kind: str) -> list[QueryScores]:
    """What was said of the set as it is now, the newest first; what was said of an earlier content is passed over."""
    keys = [path.stem for path in (files(workspace, query_set.id).measures / kind).glob("*.npz")]
    there = {key: scores for key in keys if (scores := _scores(workspace, query_set, kind, key)) is not None}
    now_said = [scores for key, scores in there.items() if key == _scores_key(workspace, query_set, scores.by)]
    return sorted(now_said, key=lambda scores: (scores.created, scores.by), reverse=True)


def _scores(workspace: Workspace, query_set: QuerySet, kind: str, key: str) -> QueryScores | None:
    columns = load_columns(workspace, query_set.id, kind, key)
    if columns is None or set(columns) != {"values", "by", "created"}:
        return None
    return QueryScores(kind, str(columns["by"]), columns["values"], str(columns["created"]))


def _scores_key(workspace: Workspace, query_set: QuerySet, by: str) -> str:
    return sha256_text("1", state(workspace, query_set), query_set.corpus_hash, by)[:16]
