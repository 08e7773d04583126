"""What people said of runs, as it stands in ``runs.json``; ``results.run_notes`` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdp.base.errors import WorkspaceError
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace, read_json


@dataclass(frozen=True)
class Annotation:
    """What is said of one run, or (``archived`` alone) of one row."""

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    archived: bool = False


def file_of(workspace: Workspace) -> Path:
    return workspace.root / "runs.json"


def load(workspace: Workspace) -> Mapping[str, Annotation]:
    """{id of a run or a row: what is said of it}. WorkspaceError where the file is damaged."""
    path = file_of(workspace)
    return ANSWERS.get(path, "annotations", lambda: read(path)) if path.exists() else {}


def read(path: Path) -> dict[str, Annotation]:
    value = read_json(path)
    try:
        return {
            str(key): Annotation(
                str(about.get("name", "")), tuple(map(str, about.get("tags", ()))), str(about.get("note", "")),
                bool(about.get("archived", False)),
            )
            for key, about in value["runs"].items()
        }  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise WorkspaceError(
            f"{path} does not hold names, tags and notes of runs.",
            hint="Put back a copy of it, or move it away: the scores are not in it.",
        ) from error
