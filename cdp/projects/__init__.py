"""Projects: which corpora and benchmarks belong together, under one name.

The sole owner of ``projects/`` in the workspace. A project is a record that names things by their ids; the things
themselves stay where they are, and whoever removes one takes it out of its projects too (``forget``).
"""

from __future__ import annotations

from cdp.projects.record import KINDS, Project
from cdp.projects.store import (
    create,
    damaged,
    default,
    delete,
    forget,
    list_projects,
    load,
    set_default,
    update,
)

__all__ = [
    "KINDS",
    "Project",
    "create",
    "damaged",
    "default",
    "delete",
    "forget",
    "list_projects",
    "load",
    "set_default",
    "update",
]
