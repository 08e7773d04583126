"""A project's record on disk: what is written is read back, whatever the names, and a damaged one ends nothing."""

from __future__ import annotations

import json
import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cdp import projects
from cdp.base.errors import ConfigError, NotFoundError, WorkspaceError
from cdp.base.text import storable
from cdp.base.workspace import Workspace
from tests.strategies import ODD, SCRIPTS


def test_what_is_written_is_read_back(workspace: Workspace) -> None:
    made = projects.create(workspace, "Sea lights", corpora=["c-1", "c-2", "c-1"], benchmarks=["b"])
    assert (made.id, made.corpora, made.benchmarks) == ("sea-lights", ("c-1", "c-2"), ("b",))
    assert projects.load(workspace, made.id) == made
    assert projects.list_projects(workspace) == [made]
    changed = projects.update(workspace, made.id, lambda project: replace(project, name="Lights", id="other"))
    assert (changed.id, changed.name, changed.created) == (made.id, "Lights", made.created)
    projects.delete(workspace, made.id)
    assert projects.list_projects(workspace) == []
    with pytest.raises(NotFoundError):
        projects.load(workspace, made.id)


@pytest.mark.slow
def test_any_name_has_a_project_of_its_own(workspace: Workspace) -> None:
    dice = random.Random(16)
    pieces = [*SCRIPTS, *ODD, "all", "none", "../..", ".", "", "-", "😀" * 70, "ß" * 200, "con\nnul", "a/b", "*"]
    names = [dice.choice(pieces)[: dice.randint(0, 120)] for _ in range(25)] + pieces
    unstorable = [name for name in names if not storable(name)]
    names = [name for name in names if storable(name)]
    for name in unstorable:  # NUL, or half of a surrogate pair
        with pytest.raises(ConfigError, match="cannot be stored"):
            projects.create(workspace, name)
    made = [projects.create(workspace, name, taken={"a-b"}) for name in names]
    assert len({project.id for project in made}) == len(names)
    assert not {"all", "none", "a-b"} & {project.id for project in made}
    assert {p.id: p.name for p in projects.list_projects(workspace)} == {p.id: p.name for p in made}
    assert all(workspace.project(project.id).parent == workspace.projects for project in made)


def test_what_is_no_more_is_forgotten_everywhere(workspace: Workspace) -> None:
    for name in ("one", "two"):
        projects.create(workspace, name, corpora=["gone", "stays"], benchmarks=["gone"])
    projects.forget(workspace, corpus="gone")
    assert [p.corpora for p in projects.list_projects(workspace)] == [("stays",)] * 2
    assert [p.benchmarks for p in projects.list_projects(workspace)] == [("gone",)] * 2, "a benchmark of that name"
    projects.forget(workspace, benchmark="gone")
    assert [p.benchmarks for p in projects.list_projects(workspace)] == [()] * 2


def test_changes_at_once_are_all_kept(workspace: Workspace) -> None:
    made = projects.create(workspace, "shared")

    def add(number: int) -> None:
        projects.update(workspace, made.id, lambda before: before.with_members((f"c-{number}",), ()))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(projects.load(workspace, made.id).corpora) == {f"c-{number}" for number in range(12)}


DAMAGED = [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b'"text"', b"[" * 5000, b'{"id": "x"}',
    b'{"id": "x", "name": 3, "created": ""}', b'{"id": "x", "name": "n", "created": "", "corpora": "c"}',
    b'{"id": "x", "name": "n", "created": "", "corpora": [3]}', b'{"id": "y", "name": "n", "created": ""}',
    b'{"id": "x", "name": "\\ud800", "created": ""}', b'{"id": "x", "name": "n", "created": null}',
]  # fmt: skip


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_record_is_named_and_left_out(workspace: Workspace, content: bytes) -> None:
    whole = projects.create(workspace, "whole")
    path = workspace.project("x") / "project.json"
    path.parent.mkdir()
    path.write_bytes(content)
    assert projects.list_projects(workspace) == [whole]
    [problem] = projects.damaged(workspace)
    assert str(path) in problem
    with pytest.raises(WorkspaceError):
        projects.load(workspace, "x")
    projects.forget(workspace, corpus="anything")
    assert projects.create(workspace, "x").id == "x-2"
    projects.delete(workspace, "x")
    assert projects.damaged(workspace) == []


def test_fields_of_a_later_version_are_passed_over(workspace: Workspace) -> None:
    made = projects.create(workspace, "later")
    path = workspace.project(made.id) / "project.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "colour": "red", "implied": True}), encoding="utf-8")
    assert projects.load(workspace, made.id) == made


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"project": 3}', b'{"project": "../.."}'])
def test_a_damaged_default_is_none(workspace: Workspace, content: bytes) -> None:
    projects.set_default(workspace, "mine")
    assert projects.default(workspace) == "mine"
    (workspace.projects / "default.json").write_bytes(content)
    assert projects.default(workspace) == ""


def test_a_record_that_cannot_be_written_is_an_error(workspace: Workspace, tmp_path: Path) -> None:
    workspace.projects.parent.mkdir(parents=True)
    workspace.projects.write_text("a file where the folder should be")
    with pytest.raises(WorkspaceError):
        projects.create(workspace, "mine")
    assert projects.list_projects(workspace) == []
