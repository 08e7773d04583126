"""A workspace in one file and back, whole or not at all; and what is cleared away is only what can be made anew."""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdp import catalog, jobs
from cdp.base import archives
from cdp.base.archives import LIST
from cdp.base.errors import CdpError, ConfigError, InputError, NotFoundError, WorkspaceError
from cdp.base.workspace import Workspace, write_json
from cdp.jobs.tidy import NEW
from cdp.services import corpora, queries
from cdp.services.workspace import backup, demo
from tests.catalog.support import add_evaluation
from tests.jobs.support import start, until_state, until_step


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    demo.load(workspace)
    add_evaluation(workspace, "evaluate-1", "a")
    write_json(workspace.llm_cache / "aa" / "answer.json", {"text": "an answer"})
    return workspace


def files(workspace: Workspace) -> dict[str, bytes]:
    """Everything that is worth anything."""
    return {
        str(path.relative_to(workspace.root)): path.read_bytes()
        for top in ("corpora", "queries", "benchmarks", "jobs", "llm_cache", "embeddings")
        for path in (workspace.root / top).rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.parts[len(workspace.root.parts) :])
    }


@pytest.mark.slow
def test_a_workspace_goes_to_another_machine_and_is_the_same(filled: Workspace, tmp_path: Path) -> None:
    written = backup.export(filled, tmp_path / "all.zip")
    other = Workspace(tmp_path / "other")
    brought = backup.import_archive(other, tmp_path / "all.zip")
    assert files(other) == files(filled)
    assert (brought.files, brought.size, brought.unchanged) == (written.files, written.size, 0)
    assert [row["id"] for row in catalog.evaluations(other)] == ["evaluate-1"]
    assert {q.id for q in queries.list_query_sets(other)} == {q.id for q in queries.list_query_sets(filled)}
    again = backup.import_archive(other, tmp_path / "all.zip")
    assert (again.files, again.unchanged) == (0, written.files)


def test_a_part_brings_what_it_rests_on(filled: Workspace, tmp_path: Path) -> None:
    query_set = next(q for q in queries.list_query_sets(filled) if q.name == "demo diverse")
    backup.export(filled, tmp_path / "part.zip", queries=["demo diverse"])
    other = Workspace(tmp_path / "other")
    backup.import_archive(other, tmp_path / "part.zip")
    assert [q.id for q in queries.list_query_sets(other)] == [query_set.id]
    assert [c.id for c in corpora.list_corpora(other)] == [query_set.corpus_id]
    with pytest.raises(NotFoundError, match="nothing-like-it"):
        backup.export(filled, tmp_path / "none.zip", benchmarks=["nothing-like-it"])


def test_caches_stay_behind_where_asked(filled: Workspace, tmp_path: Path) -> None:
    backup.export(filled, tmp_path / "small.zip", caches=False)
    assert not [name for name in zipfile.ZipFile(tmp_path / "small.zip").namelist() if name.startswith("llm_cache")]


def test_nothing_is_overwritten(filled: Workspace, tmp_path: Path) -> None:
    backup.export(filled, tmp_path / "all.zip")
    with pytest.raises(InputError, match="is there already"):
        backup.export(filled, tmp_path / "all.zip")
    changed = next(filled.corpora.glob("*/manifest.json"))
    changed.write_text("{}", encoding="utf-8")
    missing = next(filled.queries.glob("*/queries.jsonl"))
    missing.unlink()
    before = files(filled)
    with pytest.raises(InputError, match=r"other content for corpora/.*manifest\.json"):
        backup.import_archive(filled, tmp_path / "all.zip")
    assert files(filled) == before, "and what is missing is not brought either"


@pytest.mark.slow
def test_a_job_at_work_is_left_out_and_named(
    filled: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "is_worker", lambda module: True)  # the job is a test's
    done = start(filled, steps=1)
    until_state(filled, done, "finished")
    busy = start(filled, steps=1000, hold_at=1)
    until_step(filled, busy, 1)
    written = backup.export(filled, tmp_path / "all.zip")
    jobs.stop(filled, busy)
    names = zipfile.ZipFile(tmp_path / "all.zip").namelist()
    assert len(written.left_out) == 1
    assert busy in written.left_out[0]
    assert not [name for name in names if busy in name]
    assert f"jobs/{done}/spec.json" in names
    other = Workspace(tmp_path / "other")
    assert backup.import_archive(other, tmp_path / "all.zip").left_out == written.left_out
    assert jobs.view(other, done).state == "finished"
    until_state(filled, busy, "stopped")


Change = Callable[[dict[str, bytes], dict[str, Any]], None]


def _path(name: str) -> Change:
    def change(content: dict[str, bytes], head: dict[str, Any]) -> None:
        content[name] = content.pop(head["files"][0]["path"])
        head["files"][0]["path"] = name

    return change


def _entry(**values: Any) -> Change:
    return lambda content, head: head["files"][0].update(values)


def _head(**values: Any) -> Change:
    return lambda content, head: head.update(values)


def _unlisted(content: dict[str, bytes], head: dict[str, Any]) -> None:
    content["corpora/x/more.txt"] = b"more"


def _missing(content: dict[str, bytes], head: dict[str, Any]) -> None:
    del content[head["files"][0]["path"]]


def _changed(content: dict[str, bytes], head: dict[str, Any]) -> None:
    name = head["files"][0]["path"]
    content[name] = bytes([content[name][0] ^ 1]) + content[name][1:]


def _file_as_folder(content: dict[str, bytes], head: dict[str, Any]) -> None:
    first = head["files"][0]["path"]
    content[f"{first}/below"] = b""
    head["files"].append({"path": f"{first}/below", "size": 0, "sha256": ""})


BAD: dict[str, Change] = {
    **{f"path {name!r}": _path(name) for name in (
        "../outside", "corpora/../../outside", "/etc/outside", "corpora//x", "corpora/./x", "corpora/x/", "C:/x",
        "corpora\\x", "corpora/a\\..\\b", "catalog.duckdb", "queue/sequence", "workspace.json", "corpora/.lock",
        "corpora/x/.hidden", "jobs/x/alive.lock", "corpora/" + "x" * 300, "corpora/a\nb", "elsewhere/x", "corpora",
        "/".join(["corpora", *["d"] * 60]),
    )},
    "a hash that is not true": _entry(sha256="0" * 64),
    "a hash that is none": _entry(sha256=None),
    "a size that is not true": _entry(size=1),
    "a negative size": _entry(size=-1),
    "a size that is none": _entry(size="12"),
    "content that was changed": _changed,
    "a file that is not listed": _unlisted,
    "a listed file that is missing": _missing,
    "a name for a file and a folder": _file_as_folder,
    "a list that is none": _head(files="all"),
    "a list of anything": _head(files=[1, None]),
    "a newer schema": _head(schema=99),
    "a newer workspace": _head(workspace_format=99),
    "a schema that is none": _head(schema="1"),
}  # fmt: skip


def rewritten(source: Path, target: Path, change: Change) -> Path:
    """The archive with another content, its hashes as they were."""
    with zipfile.ZipFile(source) as archive:
        content = {name: archive.read(name) for name in archive.namelist() if name != LIST}
        head = json.loads(archive.read(LIST))
    change(content, head)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name), data)
        archive.writestr(LIST, json.dumps(head))
    return target


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small archive."""
    workspace = Workspace(tmp_path_factory.mktemp("source") / "workspace")
    write_json(workspace.corpora / "c1" / "manifest.json", {"id": "c1"})
    (workspace.corpora / "c1" / "documents.txt").write_bytes(b"documents " * 100)
    target = workspace.root.parent / "good.zip"
    backup.export(workspace, target)
    return target


def refused(workspace: Workspace, archive: Path) -> CdpError:
    """The error of an import that changes nothing, inside the workspace or beside it."""
    around = sorted(str(path) for path in workspace.root.parent.iterdir())
    with pytest.raises(CdpError) as caught:
        backup.import_archive(workspace, archive)
    left = list(workspace.root.rglob("*")) if workspace.root.exists() else []
    assert left == [], "nothing is left"
    assert sorted(str(path) for path in workspace.root.parent.iterdir() if path != workspace.root) == [
        path for path in around if path != str(workspace.root)
    ]
    return caught.value


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_archive_changes_nothing(fault: str, good: Path, workspace: Workspace, tmp_path: Path) -> None:
    bad = rewritten(good, tmp_path / "bad.zip", BAD[fault])
    assert isinstance(refused(workspace, bad), InputError)


def test_links_are_refused(good: Path, workspace: Workspace, tmp_path: Path) -> None:
    bad = tmp_path / "bad.zip"
    with zipfile.ZipFile(good) as archive, zipfile.ZipFile(bad, "w") as target:
        for name in archive.namelist():
            info = zipfile.ZipInfo(name)
            if name.endswith("documents.txt"):
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            target.writestr(info, archive.read(name))
    assert "link" in str(refused(workspace, bad))


def test_a_bomb_is_refused_before_it_is_unpacked(workspace: Workspace, tmp_path: Path) -> None:
    """It lies about nothing and would fill the disk; or it states a small size and holds much."""
    huge = 1 << 60
    for stated in (huge, 10):
        bad = tmp_path / f"{stated}.zip"
        with zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("corpora/c1/documents.txt", bytes(1 << 20))
            head = {"schema": 1, "workspace_format": 1, "files": [
                {"path": "corpora/c1/documents.txt", "size": stated, "sha256": "0" * 64}]}  # fmt: skip
            archive.writestr(LIST, json.dumps(head))
        data = bytearray(bad.read_bytes())
        at = data.rfind(b"PK\x01\x02", 0, data.rfind(b"PK\x01\x02"))
        data[at + 24 : at + 28] = struct.pack("<I", min(stated, 0xFFFFFFF0))
        bad.write_bytes(data)
        refused(workspace, bad)


@pytest.mark.slow
def test_a_damaged_archive_is_refused_whichever_byte_is_wrong(good: Path, workspace: Workspace, tmp_path: Path) -> None:
    """A byte changed, or the end cut off, anywhere: refused, or not part of any content."""
    data = good.read_bytes()
    bad = tmp_path / "bad.zip"
    outcomes = {"refused": 0, "taken": 0}
    for number, at in enumerate(range(0, len(data), max(1, len(data) // 150))):
        damaged = data[:at] if number % 2 else data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]
        bad.write_bytes(damaged)
        other = Workspace(tmp_path / "w" / str(number))
        try:
            backup.import_archive(other, bad)
            outcomes["taken"] += 1
            assert (other.corpora / "c1" / "documents.txt").read_bytes() == b"documents " * 100
        except CdpError:
            outcomes["refused"] += 1
            assert not other.root.exists() or list(other.root.iterdir()) == []
    assert outcomes["refused"] > 100, outcomes


def test_an_import_that_finds_a_link_in_its_way_does_not_follow_it(
    good: Path, workspace: Workspace, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    workspace.corpora.mkdir(parents=True)
    os.symlink(elsewhere, workspace.corpora / "c1")
    with pytest.raises(InputError, match="other content"):
        backup.import_archive(workspace, good)
    assert list(elsewhere.iterdir()) == []


def test_no_room_is_said_before_anything_is_written(good: Path, workspace: Workspace, monkeypatch: Any) -> None:
    monkeypatch.setattr("cdp.base.archives.shutil.disk_usage", lambda path: type("Usage", (), {"free": 5})())
    with pytest.raises(WorkspaceError, match="5 are free"):
        backup.import_archive(workspace, good)
    assert not workspace.root.exists()


@pytest.mark.parametrize("module", ["torch.distributed.run", "own.evil", "cdp.workers.training.evil", "cdp.jobs.node"])
def test_a_job_that_would_run_something_else_is_kept_out(tmp_path: Path, module: str) -> None:
    """``python -m torch.distributed.run FOLDER`` runs the ``__main__.py`` that the archive has put there."""
    source, other = Workspace(tmp_path / "a" / "workspace"), Workspace(tmp_path / "b" / "workspace")
    write_json(source.jobs / "train-1" / "spec.json", {"module": module})
    (source.jobs / "train-1" / "__main__.py").write_text("print('here')")
    other.root.mkdir(parents=True)
    archives.export(source, tmp_path / "all.zip", [source.jobs])
    assert "no worker of this program" in str(refused(other, tmp_path / "all.zip"))
    write_json(source.jobs / "train-1" / "spec.json", {"module": "cdp.training.worker"})  # of an earlier version
    archives.export(source, tmp_path / "good.zip", [source.jobs])
    assert backup.import_archive(other, tmp_path / "good.zip").files == 2


@pytest.mark.slow
def test_prune_shows_then_does_and_keeps_what_counts(filled: Workspace) -> None:
    done = start(filled, steps=3)
    until_state(filled, done, "finished")
    lost = filled.jobs / "train-lost"
    write_json(lost / "checkpoints" / "last.json", {"step": 3})
    write_json(lost / "spec.json", {**json.loads((filled.job(done) / "spec.json").read_text()), "id": "train-lost"})
    write_json(filled.jobs / f"{NEW}train-9" / "status.json", {})
    write_json(filled.embeddings / "key" / "manifest.json", {})
    catalog.ingest(filled)
    catalog.rebuild(filled)
    before = files(filled)
    shown = {row.what: row.paths for row in backup.prunable(filled)}
    assert files(filled) == before
    assert shown["checkpoints"] == (f"jobs/{done}/checkpoints",), "a job that was cut off needs its own"
    assert shown["embeddings"] == ("embeddings/key",)
    assert "catalog.duckdb.replaced" in shown["leftovers"]
    gone = {row.what: row.paths for row in backup.prune(filled)}
    assert gone == {**shown, "leftovers": gone["leftovers"]}
    doomed = (f"jobs/{done}/checkpoints/", "embeddings/")
    assert files(filled) == {name: data for name, data in before.items() if not name.startswith(doomed)}
    assert all(row.n == 0 for row in backup.prunable(filled))
    assert backup.prune(filled, ["llm_cache"])[0].n == 1
    assert not (filled.llm_cache / "aa").exists()
    with pytest.raises(ConfigError, match="everything"):
        backup.prune(filled, ["everything"])


def test_an_upload_on_its_way_is_not_cleared_away(filled: Workspace) -> None:
    with corpora.received(filled, "a.txt", io.BytesIO(b"text")) as path:
        backup.prune(filled, ["leftovers"])
        assert path.read_bytes() == b"text"
