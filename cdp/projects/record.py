"""What is known of a project: ``project.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from cdp.base.errors import WorkspaceError
from cdp.base.records import checked
from cdp.base.text import storable

SCHEMA = 1

KINDS = ("corpora", "benchmarks")
"""What a project names itself. Query sets belong to it by their corpus, jobs by what they are given."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project. ``corpora`` and ``benchmarks`` are ids, in the order in which they were added.

    ``implied`` is one that nobody made: a corpus in no project stands for one of its own name, and has no file.
    """

    id: str
    name: str
    created: str
    corpora: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    notes: str = ""
    implied: bool = False

    def with_members(self, corpora: tuple[str, ...], benchmarks: tuple[str, ...]) -> Project:
        """The same project with these members besides its own; each once."""
        return replace(
            self,
            corpora=tuple(dict.fromkeys((*self.corpora, *corpora))),
            benchmarks=tuple(dict.fromkeys((*self.benchmarks, *benchmarks))),
        )

    def without(self, corpora: tuple[str, ...], benchmarks: tuple[str, ...]) -> Project:
        """The same project without these members."""
        return replace(
            self,
            corpora=tuple(name for name in self.corpora if name not in corpora),
            benchmarks=tuple(name for name in self.benchmarks if name not in benchmarks),
        )

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the file."""
        values = asdict(self)
        values.pop("implied")
        return {"schema": SCHEMA, **values}

    @classmethod
    def from_dict(cls, values: Any, path: Path) -> Project:
        """What was read from ``path``; WorkspaceError where it is no project, or that of another folder.

        Fields that a later version added are passed over.
        """
        if not isinstance(values, Mapping):
            raise WorkspaceError(f"{path} is not a project: it holds no JSON object.", hint=HOW_TO_REPAIR)
        known = {field.name for field in fields(cls)} - {"implied"}
        project = checked(cls, {name: value for name, value in values.items() if name in known}, path)
        texts = (project.name, project.notes, *project.corpora, *project.benchmarks)
        if not all(storable(text) for text in texts):
            raise WorkspaceError(f"{path} holds text with NUL or half a character.", hint=HOW_TO_REPAIR)
        if project.id != path.parent.name:
            raise WorkspaceError(f"{path} is of another project, {project.id[:80]!r}.", hint=HOW_TO_REPAIR)
        return project


HOW_TO_REPAIR = "Repair the file, or remove the folder and make the project anew; corpora and benchmarks are untouched."
