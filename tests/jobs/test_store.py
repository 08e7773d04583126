"""A job's files on their way through a store in a folder: addresses, pieces, what is needed, what has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cdp.base.errors import ClusterError, ConfigError
from cdp.base.workspace import Workspace, append_jsonl, now, write_bytes, write_json
from cdp.jobs import control, place
from cdp.jobs.place import Place
from cdp.jobs.spec import JobSpec
from cdp.jobs.store import bucket, needs, pieces
from cdp.jobs.store.bucket import Bucket, checked_store, fault_of
from cdp.jobs.store.changes import Changes
from cdp.jobs.store.here import Here
from cdp.jobs.store.pieces import Entry, GoneError, Pieces

CLUSTER = "http://head:8265"
STORE = "s3://bucket/prefix"


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*bucket.ENDPOINTS, *bucket.REGIONS):
        monkeypatch.delenv(name, raising=False)


def spec_of(**values: object) -> JobSpec:
    common = {"id": "job-1", "kind": "test", "name": "n", "created": now(), "sequence": 1, "module": "m", "config": {}}
    return JobSpec(**{**common, **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("typed", "read"),
    [("", ""), (" s3://bucket/a/ ", "s3://bucket/a"), ("s3://bucket", "s3://bucket"), ("file:///a/b/", "file:///a/b"),
     ("s3://b/p?region=eu-west-1", "s3://b/p?region=eu-west-1"), ("gs://b/p", "gs://b/p")],
)  # fmt: skip
def test_an_address_has_one_spelling(typed: str, read: str) -> None:
    assert checked_store(typed) == read


def test_the_endpoint_of_the_environment_becomes_part_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert checked_store(STORE) == f"{STORE}?endpoint_override=http://minio:9000&region=eu-west-1"
    assert bucket.shown(checked_store(STORE)) == STORE


@pytest.mark.parametrize(
    ("typed", "told"),
    [("bucket/prefix", "is not the address"), ("http://bucket", "is not the address"), ("file://a/b", "is not the"),
     ("s3://", "is not the address"), ("s3://b#x", "is not the address"), ("s3://me:key@bucket", "holds no keys"),
     ("s3://b?secret_key=x", "holds no keys"), ("s3://b?x=y", "has no x"), ("s3://b/a b", "is not the address")],
)  # fmt: skip
def test_what_is_no_address_is_refused(typed: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as error:
        checked_store(typed)
    assert error.value.hint


@pytest.mark.parametrize(
    ("said", "told"),
    [("AWS Error NO_SUCH_BUCKET during PutObject", "no such bucket"), ("AWS Error ACCESS_DENIED", "not permitted"),
     ("AWS Error SIGNATURE_DOES_NOT_MATCH", "does not accept the credentials"),
     ("AWS Error INTERNAL_FAILURE during PutObject operation: ", "no credentials"),
     ("AWS Error UNKNOWN (HTTP status 507)", "full"), ("QuotaExceeded", "full"), ("No space left on device", "full"),
     ("AWS Error NETWORK_CONNECTION: curlCode: 7", "nothing answers"), ("strange", "strange")],
)  # fmt: skip
def test_what_is_wrong_with_a_store_is_one_sentence_with_the_next_step(said: str, told: str) -> None:
    error = fault_of(f"{STORE}?region=x", "written", OSError(said))
    assert error.message.startswith(f"The store {STORE} could not be written")
    assert told in error.message
    assert error.hint


def test_a_store_in_a_folder(tmp_path: Path) -> None:
    store = Bucket(f"file://{tmp_path / 'store'}")
    assert (store.get("a/b"), store.has("a/b"), store.names("a")) == (None, False, [])
    store.put("a/b", b"1")
    store.put("a/b", b"2")
    assert (store.get("a/b"), store.has("a/b"), store.names("a")) == (b"2", True, ["b"])
    for _ in range(2):
        store.delete("a/b")
        store.clear("a")
    assert store.get("a/b") is None


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="ascii")
    with pytest.raises(ClusterError, match="could not be written"):
        Bucket(f"file://{tmp_path}/file").put("a/b", b"1")


def test_files_go_in_pieces_and_none_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 4)
    monkeypatch.setattr(pieces, "GROWING_PIECE", 3)
    carried = Pieces(Bucket(f"file://{tmp_path / 'store'}"), "jobs/j")
    big, log, empty = tmp_path / "big", tmp_path / "a.log", tmp_path / "empty"
    big.write_bytes(b"aaaabbbbcc")
    log.write_bytes(b"123456")
    empty.touch()
    entry = carried.send(big, own=False)
    assert (entry.size, len(entry.pieces), carried.sent, carried.sent_bytes) == (10, 3, 3, 10)
    assert Pieces(carried.bucket, "jobs/other").send(big, own=False) == entry
    assert carried.sent == 3, "it is there"
    again = Pieces(carried.bucket, "jobs/other")
    again.send(big, own=False)
    assert again.sent == 0, "for everybody"
    before = carried.send(log, own=True, growing=True)
    log.write_bytes(b"12345678")
    after = carried.send(log, own=True, growing=True)
    assert (carried.sent, before.pieces[:2]) == (6, after.pieces[:2]), "only its end"
    carried.fetch_all({tmp_path / "x" / "big": entry, tmp_path / "empty2": carried.send(empty, own=True)})
    assert (tmp_path / "x" / "big").read_bytes() == big.read_bytes()
    assert (tmp_path / "empty2").read_bytes() == b""
    carried.fetch(before, tmp_path / "copy")
    carried.fetch(after, tmp_path / "copy", before)
    assert (tmp_path / "copy").read_bytes() == b"12345678"
    changed = carried.send(log, own=True, change=(b"34", b"-----"))
    carried.fetch(changed, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"12-----5678"
    carried.delete(set(after.pieces))
    with pytest.raises(GoneError):
        carried.fetch(after, tmp_path / "gone")
    assert not (tmp_path / "gone").exists()
    carried.close()


def test_a_piece_that_was_damaged_is_not_taken(tmp_path: Path) -> None:
    carried = Pieces(Bucket(f"file://{tmp_path / 'store'}"), "jobs/j")
    (tmp_path / "file").write_bytes(b"as it was")
    entry = carried.send(tmp_path / "file", own=True)
    (tmp_path / "store" / "jobs" / "j" / "pieces" / entry.pieces[0]).write_bytes(b"as it is ")
    with pytest.raises(ClusterError, match="was damaged"):
        carried.fetch(entry, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def filled(workspace: Workspace) -> None:
    root = workspace.root
    write_json(root / "queries" / "set-1" / "manifest.json", {"corpus": "corpus-1", "job": "made-it"})
    write_json(root / "queries" / "set-2" / "manifest.json", {})
    for name in ("corpora/corpus-1/documents.parquet", "corpora/other/documents.parquet", "benchmarks/demo/qrels/a.tsv",
                 "jobs/made-it/worker.log", "jobs/made-it/checkpoints/step-1/state.pt", "jobs/made-it/results/x.json",
                 "jobs/job-1/checkpoints/step-1/state.pt", "jobs/job-1/status.json", "jobs/job-1/worker.lock",
                 "jobs/job-1/handover-1", "jobs/job-1/.part", "queries/set-1/.part",
                 "models/own/model.json"):  # fmt: skip
        write_bytes(root / name, name.encode())
    write_json(root / "jobs" / "made-it" / "spec.json", {"config": {"corpus": "other", "retriever": "base"}})
    write_json(root / "jobs" / "base" / "spec.json", {})
    write_json(root / "jobs" / "job-1" / "spec.json", {})


def test_what_a_job_names_is_needed_with_what_that_names(workspace: Workspace) -> None:
    filled(workspace)
    config = {"sets": "x=set-1", "benchmark": ["demo"], "retriever": f"{workspace.root}/models/own", "steps": 3}
    assert needs.needed(workspace, spec_of(config=config), {"queries/set-2/manifest.json", "queries/gone"}) == sorted(
        ["benchmarks/demo/qrels/a.tsv", "corpora/corpus-1/documents.parquet", "jobs/base/spec.json",
         "jobs/job-1/checkpoints/step-1/state.pt", "jobs/job-1/spec.json", "jobs/made-it/results/x.json",
         "jobs/made-it/spec.json", "models/own/model.json", "queries/set-1/manifest.json",
         "queries/set-2/manifest.json"]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "carried"),
    [("jobs/job-1/results/a.json", True), ("jobs/job-1/outcome.json", True), ("queries/q/queries.jsonl", True),
     ("jobs/job-1/spec.json", False), ("jobs/job-1/status.json", False), ("jobs/job-1/worker.lock", False),
     ("jobs/other/results/a.json", False), ("queries/../jobs/other/a", False), ("/etc/passwd", False),
     ("../x/y/z", False), ("corpora/.new/a", False), ("cluster.json", False), ("llm_cache/answers.sqlite", False),
     ("queries//a", False), ("jobs/job-1/a\\b", False), ("corpora/a", False)],
)  # fmt: skip
def test_what_a_node_may_send_back(name: str, carried: bool) -> None:
    assert needs.is_carried(name, "jobs/job-1") == carried


def test_what_cannot_run_there_is_refused_at_once(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    there = Place(CLUSTER, store=STORE)
    outside = {"model": f"{tmp_path}/model"}
    needs.check(workspace, spec_of(config=outside))
    needs.check(workspace, spec_of(place=there, config={"model": "someone/model", "prompt": "a/b\nc"}))
    for spec, told in (
        (spec_of(place=there, config=outside), "lies outside the workspace"),
        (spec_of(place=there, config={"model": "./model"}, cwd=str(tmp_path)), "lies outside the workspace"),
        (spec_of(place=replace(there, workers=2), divides=True), "on several nodes shares files"),
        (spec_of(place=there, shares="the paid answers"), "shares the paid answers"),
    ):
        with pytest.raises(ConfigError, match=told) as error:
            needs.check(workspace, spec)
        assert error.value.hint


def test_only_the_workspaces_own_cluster_has_its_store(workspace: Workspace) -> None:
    place.set_for_workspace(workspace, Place(CLUSTER, store=STORE))
    assert place.current(workspace).store == STORE
    for chosen, store in ((Place(CLUSTER), STORE), (Place("http://other:8265", store="s3://evil"), ""), (Place(), "")):
        with place.choosing(chosen):
            assert place.current(workspace).store == store
    write_json(workspace.job("job-1") / "spec.json", spec_of(place=Place(CLUSTER, store="s3://evil/x")).to_dict())
    assert control.place_of(workspace, "job-1").store == STORE, "an imported job names no store"


def test_changes_are_seen_whole(tmp_path: Path) -> None:
    root, own = tmp_path / "workspace", "jobs/job-1"
    carried = Pieces(Bucket(f"file://{tmp_path / 'store'}"), own)
    write_bytes(root / own / "spec.json", b"{}")
    write_bytes(root / "corpora/c/documents.parquet", b"given")
    write_bytes(root / own / "checkpoints/step-1/state.pt", b"one")
    changes = Changes(root, own, carried, (str(root).encode(), b"/home/me/ws"), tmp_path / "links")
    changes.given({"corpora/c/documents.parquet": Entry(5, ()), f"{own}/checkpoints/step-1/state.pt": Entry(3, ("x",))})
    assert changes.whole() is None, "all of it is known"
    write_bytes(root / own / "results/a.json", f'"{root}/corpora"'.encode())
    write_bytes(root / own / "checkpoints/.step-2.partial/state.pt", b"half")
    write_bytes(root / own / "heartbeat.json", b"{}")
    append_jsonl(root / own / "metrics.jsonl", [1])
    listed = changes.whole()
    assert listed is not None
    assert sorted(listed) == [f"{own}/checkpoints/step-1/state.pt", f"{own}/results/a.json"], "and nothing half"
    carried.fetch(listed[f"{own}/results/a.json"], tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text() == '"/home/me/ws/corpora"', "as its owner knows it"
    assert changes.whole() is None
    assert sorted(changes.news()) == [f"{own}/heartbeat.json", f"{own}/metrics.jsonl"]
    os.rename(root / own / "checkpoints/.step-2.partial", root / own / "checkpoints/step-2")
    (root / own / "checkpoints/step-1/state.pt").unlink()
    write_bytes(root / "queries/q/manifest.json", b"{}")
    listed = changes.whole()
    assert listed is not None
    assert sorted(listed) == [f"{own}/checkpoints/step-2/state.pt", f"{own}/results/a.json", "queries/q/manifest.json"]
    carried.close()


def test_what_was_changed_here_meanwhile_stays(workspace: Workspace, tmp_path: Path) -> None:
    folder = workspace.job("job-1")
    spec = spec_of(config={"set": "set-1"})
    write_json(folder / "spec.json", spec.to_dict())
    write_bytes(workspace.root / "queries/set-1/queries.jsonl", b"as sent")
    write_bytes(workspace.root / "queries/set-1/review.jsonl", b"as sent")
    write_bytes(folder / "checkpoints/step-1/state.pt", b"one")
    write_bytes(folder / "worker.log", b"attempt 1")
    side = Here(folder, spec, f"file://{tmp_path / 'store'}", 1)
    assert "needs 5 files" in side.send(lambda: True)
    made = {"queries/set-1/queries.jsonl": b"by node", "queries/set-1/review.jsonl": b"by node",
            "embeddings/key/shard.npy": b"by node", "jobs/job-1/checkpoints/step-2/state.pt": b"two",
            "jobs/job-1/spec.json": b"evil", "jobs/other/results/a.json": b"evil"}  # fmt: skip
    for name, content in made.items():
        write_bytes(tmp_path / "node" / name, content)
    write_bytes(workspace.root / "queries/set-1/review.jsonl", b"decided here meanwhile")
    listed = {name: side.pieces.send(tmp_path / "node" / name, own=False) for name in made}
    side.letters.write("files.json", {"number": 1, "files": {name: entry.to_list() for name, entry in listed.items()}})
    side.letters.write("pulse.json", {"node": {"attempt": 1, "phase": "running"}, "beat": 1, "files": 1})
    side.catch_up()
    root = workspace.root
    assert (root / "queries/set-1/queries.jsonl").read_bytes() == b"by node"
    assert (root / "queries/set-1/review.jsonl").read_bytes() == b"decided here meanwhile"
    assert (root / "embeddings/key/shard.npy").read_bytes() == b"by node"
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["step-2"]
    assert (folder / "worker.log").read_bytes() == b"attempt 1", "no list names it, and it stays"
    assert b"evil" not in (folder / "spec.json").read_bytes()
    assert not (root / "jobs/other").exists()
    side.pieces.close()


def test_without_a_store_nothing_of_it_is_loaded() -> None:
    code = "import sys, cdp.jobs.supervisor, cdp.jobs.node; print([m for m in sys.modules if m.startswith('pyarrow')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
