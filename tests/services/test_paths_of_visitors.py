"""A path that a visitor types leads into allowed folders or nowhere, and is only read."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdp.base import permission
from cdp.base.config import DownloadConfig, EvaluationConfig, MetricsConfig, SynthesisConfig, TrainingConfig
from cdp.base.errors import CdpError, InputError
from cdp.base.permission import NotAllowedError
from cdp.base.workspace import Workspace
from cdp.corpus import looking
from cdp.services import access, adding, benchmarks, corpora, evaluation, jobs, queries, studies, training, tuning
from cdp.studies import target_queries
from cdp.studies.config import StudyConfig
from tests.support import REPOSITORY

SECRET = '{"_id": "1", "text": "CDP_API_KEY=sk-very-secret-0123456789"}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that the operator never allowed."""
    file = tmp_path / "outside" / "secret.jsonl"
    file.parent.mkdir()
    file.write_text(SECRET)
    return file


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """The folder that the operator allowed; from here on everybody is a visitor of a shared dashboard."""
    folder = tmp_path / "allowed"
    folder.mkdir()
    monkeypatch.setenv(permission.FOLDERS, os.pathsep.join([str(tmp_path / "not there"), str(folder)]))
    permission.in_dashboard(shared=True)
    return folder


def spellings(outside: Path, allowed: Path, home: Path) -> dict[str, str]:
    """Ways to say a path that leads out."""
    (allowed / "link.jsonl").symlink_to(outside)
    (allowed / "folder").symlink_to(outside.parent)
    (allowed / "loop").symlink_to(allowed / "loop")
    (home / "mine.jsonl").write_text(SECRET)
    return {
        "absolute": str(outside),
        "dots": f"{allowed}/../outside/secret.jsonl",
        "link": str(allowed / "link.jsonl"),
        "linked folder": str(allowed / "folder" / "secret.jsonl"),
        "loop": str(allowed / "loop"),
        "home": "~/mine.jsonl",
        "environment": "/proc/self/environ",
        "own files": "/proc/self/root" + str(outside),
        "descriptor": "/dev/fd/0",
        "device": "/dev/zero",
        "nul": str(allowed) + "\0/x",
        "long": str(allowed / ("x" * 300)),
        "relative": os.path.relpath(outside),
        "nothing": " ",
    }


SPELLINGS = (
    "absolute", "dots", "link", "linked folder", "loop", "home", "environment", "own files", "descriptor", "device",
    "nul", "long", "relative", "nothing",
)  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_path_that_leads_out_is_refused(
    name: str, workspace: Workspace, outside: Path, allowed: Path, home: Path
) -> None:
    written = spellings(outside, allowed, home)[name]
    with pytest.raises((NotAllowedError, InputError)):
        permission.to_read(workspace, written)
    assert outside.read_text() == SECRET


def test_allowed_folders_the_workspace_and_the_shipped_data_are_read(workspace: Workspace, allowed: Path) -> None:
    file = allowed / "mine.jsonl"
    file.write_text(SECRET)
    (allowed / "near").symlink_to(file)
    workspace.uploads.mkdir(parents=True)
    for path in (file, allowed / "near", allowed, workspace.uploads, Path("data/demo/corpus.jsonl")):
        assert permission.to_read(workspace, str(path)) == path.resolve()


def test_what_is_no_file_is_refused(workspace: Workspace, allowed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(allowed / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        permission.to_read(workspace, str(allowed / "pipe"))
    with pytest.raises(InputError, match="neither a file nor a folder"):
        permission.to_read(workspace, str(allowed))  # nor a folder that holds one: reading it would wait for ever
    (allowed / "pipe").unlink()
    monkeypatch.chdir(allowed)  # the address of a socket must be short
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("s")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        permission.to_read(workspace, str(allowed / "s"))


def test_a_folder_with_a_link_that_leads_out_is_refused(workspace: Workspace, allowed: Path, outside: Path) -> None:
    (allowed / "inner").mkdir()
    (allowed / "inner" / "docs.jsonl").symlink_to(outside)
    with pytest.raises(NotAllowedError, match="leads out"):
        corpora.add(workspace, str(allowed))
    assert corpora.list_corpora(workspace) == []


def test_a_root_that_is_a_link_and_the_whole_disk(
    workspace: Workspace, tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "name").symlink_to(outside.parent)
    permission.in_dashboard(shared=True)
    monkeypatch.setenv(permission.FOLDERS, str(tmp_path / "name"))
    assert permission.to_read(workspace, str(outside)) == outside
    monkeypatch.setenv(permission.FOLDERS, "/")
    assert permission.to_read(workspace, str(outside)) == outside
    for never in ("/proc/self/environ", "/dev/null", "/sys/kernel"):
        with pytest.raises(NotAllowedError):
            permission.to_read(workspace, never)
    monkeypatch.setenv(permission.FOLDERS, "relative")
    with pytest.raises(CdpError, match="absolute path"):
        permission.to_read(workspace, str(outside))


def test_at_home_alone_the_home_is_allowed_without_its_hidden_files(workspace: Workspace, home: Path) -> None:
    for name in ("docs/a.jsonl", ".ssh/id", "project/.env"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(SECRET)
    permission.in_dashboard()
    assert permission.mode() is permission.Mode.LOCAL
    assert permission.to_read(workspace, "~/docs/a.jsonl") == (home / "docs" / "a.jsonl").resolve()
    for hidden in ("~/.ssh/id", "~/project/.env", "~/.ssh"):
        with pytest.raises(NotAllowedError):
            permission.to_read(workspace, hidden)


def test_visitors_write_to_no_path_that_they_name(workspace: Workspace, allowed: Path) -> None:
    for path in (allowed / "new.jsonl", workspace.root / "exports" / "a.jsonl"):
        with pytest.raises(NotAllowedError):
            permission.to_write(path)


def test_the_operator_is_not_confined(workspace: Workspace, outside: Path) -> None:
    assert permission.to_read(workspace, outside) == outside
    assert corpora.add(workspace, outside).corpus.n_documents == 1
    assert permission.to_write(workspace.catalog) == workspace.catalog


def test_an_upload_is_read(workspace: Workspace, allowed: Path) -> None:
    with adding.received(workspace, [("../../etc/a.jsonl", io.BytesIO(SECRET.encode()))]) as (path, _):
        assert corpora.add(workspace, path).corpus.n_documents == 1


def asked(workspace: Workspace, path: str) -> dict[str, Callable[[], Any]]:
    """Every service with every argument that may be a path."""
    sets = [q.id for q in queries.list_query_sets(workspace)]
    own = {"corpus": "demo", "generator": "transformers"}
    train = {"query_set": sets[0]}
    of = SynthesisConfig.from_dict
    return {
        "corpora.add": lambda: corpora.add(workspace, path),
        "queries.import_file": lambda: queries.import_file(workspace, path, "demo"),
        "benchmarks.add": lambda: benchmarks.add(workspace, path),
        "evaluation.checked benchmark": lambda: evaluation.checked(workspace, "static-minilm", path),
        "evaluation.checked retriever": lambda: evaluation.checked(workspace, path, "demo"),
        "evaluation.start": lambda: jobs.start(
            workspace, "evaluation", EvaluationConfig.from_dict({"retriever": path, "benchmark": "demo"})
        ),
        "evaluation.start benchmark": lambda: jobs.start(
            workspace, "evaluation", EvaluationConfig.from_dict({"retriever": "static-minilm", "benchmark": path})
        ),
        "benchmarks.start_download": lambda: jobs.start(
            workspace, "download", DownloadConfig.from_dict({"benchmark": "scifact", "folder": path})
        ),
        "training.plan": lambda: training.plan(workspace, TrainingConfig.from_dict({**train, "retriever": path})),
        "training.plan benchmark": lambda: training.plan(
            workspace, TrainingConfig.from_dict({**train, "benchmark": path})
        ),
        "training.plan weights": lambda: training.plan(
            workspace, TrainingConfig.from_dict({**train, "weighting": "column", "weights": path})
        ),
        "training.defaults": lambda: training.defaults(workspace, path),
        "training.start": lambda: training.start(
            workspace, TrainingConfig.from_dict(train), benchmarks=[(path, "test")]
        ),
        "studies.grid_for": lambda: studies.grid_for(workspace, path),
        "studies.sweep": lambda: studies.sweep(
            workspace, TrainingConfig.from_dict({**train, "benchmark": path}), [1e-3, 1e-4]
        ),
        "metrics.start scorer": lambda: jobs.start(
            workspace, "metrics", MetricsConfig.from_dict({"query_set": sets[0], "scorer": path})
        ),
        "complexity.profile_benchmark": lambda: target_queries.profile_benchmark(workspace, path),
        "studies.plan": lambda: studies.plan(
            workspace, StudyConfig.from_dict({"benchmarks": path, "query_sets": sets[0]})
        ),
        "studies.plan split": lambda: studies.plan(
            workspace, StudyConfig.from_dict({"benchmarks": f"{path}:test", "query_sets": sets[0]})
        ),
        "studies.run": lambda: studies.run(
            workspace, StudyConfig.from_dict({"benchmarks": "demo", "query_sets": sets[0], "retrievers": path})
        ),
        "synthesis.batch_read": lambda: queries.batch_read(workspace, path),
        "synthesis.batch_write": lambda: queries.batch_write(workspace, of({"corpus": "demo"}), path),
        "synthesis.export": lambda: queries.export(workspace, sets[0], "beir", path),
        "queries.generate": lambda: jobs.start(workspace, "synthesis", of({**own, "model": path})),
        "queries.generate ranker": lambda: jobs.start(workspace, "synthesis", of({"corpus": "demo", "ranker": path})),
        "queries.generate teachers": lambda: jobs.start(
            workspace, "synthesis", of({"corpus": "demo", "teachers": f"minilm, {path}"})
        ),
        "queries.preview": lambda: queries.preview(
            workspace, "demo", looking.page(workspace, "demo", 0, 1)[0].id, generator="transformers", model=path
        ),
        "tuning.read_prompts": lambda: tuning.read_prompts([path]),
        "target_queries.read_queries": lambda: target_queries.read_queries(path),
    }


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_no_service_reads_or_writes_what_a_visitor_may_not_name(
    workspace: Workspace, outside: Path, home: Path
) -> None:
    permission.in_dashboard(shared=True)
    taken = []
    for path in (outside, outside.parent, outside.parent / "new"):
        for name, call in asked(workspace, str(path)).items():
            try:
                call()
            except NotAllowedError as error:
                if any(text in str(error) for text in ("folder that this dashboard may use", "name any path")):
                    continue
            taken.append((name, path.name))
    assert taken == []
    assert sorted(outside.parent.iterdir()) == [outside]
    assert not workspace.jobs.exists()


def test_paths_in_settings_are_handed_on_resolved(workspace: Workspace, allowed: Path) -> None:
    (allowed / "weights.csv").write_text("query_id,weight\na-1,1\n")
    (allowed / "link.csv").symlink_to(allowed / "weights.csv")
    config = TrainingConfig.from_dict({"query_set": "a", "weights": str(allowed / "link.csv")})
    assert access.checked(workspace, config).weights == str((allowed / "weights.csv").resolve())


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "fits"), [(False, True), (True, False)])
def test_a_model_of_the_hub_is_downloaded_for_those_alone(
    shared: bool, fits: bool, workspace: Workspace, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(home / "hub"))
    permission.in_dashboard(shared=shared)
    name = "nobody/a-model-of-70-billion"
    if fits:
        assert access.model(workspace, name) == name
        return
    with pytest.raises(NotAllowedError, match="not on this machine"):
        access.model(workspace, name)
    with pytest.raises(NotAllowedError, match="Mistral"):  # what an empty field means is no smaller
        access.checked(workspace, SynthesisConfig.from_dict({"corpus": "c", "generator": "transformers"}))
    for known in ("static-minilm", "qwen3-embedding-0.6b", "bm25:fr", "auto"):
        assert access.model(workspace, known) == known
    monkeypatch.setenv(access.MODELS, f"a/b, {name}")
    assert access.model(workspace, name) == name


def test_no_service_makes_a_path_of_what_somebody_typed_by_itself() -> None:
    """``~`` is read in the ground, which also asks whether the path is allowed, and for the secret of the account."""
    paths = (REPOSITORY / "cdp").rglob("*.py")
    read = {path.name for path in paths if "expanduser" in path.read_text(encoding="utf-8")}
    assert read == {"permission.py", "text.py", "records.py", "workspace.py", "notebook.py"}
