"""Deriving benchmarks as a service: a preview writes nothing and tells what is made, and each mode keeps its limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, library
from cdp.services import derived_benchmarks as derived
from cdp.services.sharing import modes
from cdp.services.sharing.modes import NotAllowedError, ReadOnlyError
from tests.benchmarks.folders import write_benchmark

QUERIES = [{"_id": f"q{i}", "text": f"Who ran {'the long race ' * (i % 3)}{i}?"} for i in range(12)]
DOCUMENTS = [{"_id": f"d{i}", "title": "", "text": f"document number {i}"} for i in range(14)]
QRELS = "".join(f"q{i}\td{i}\t1\n" for i in range(12))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_benchmark(tmp_path / "races", documents=DOCUMENTS, queries=QUERIES, qrels={"test": QRELS})


@pytest.fixture
def races(workspace: Workspace, folder: Path) -> str:
    return add_benchmark(folder, workspace, language="en")


def test_a_preview_tells_what_is_made_and_writes_nothing(races: str, workspace: Workspace) -> None:
    shown, left_out = derived.preview_parts(workspace, races, "cw", edges=[3], fewest=4)
    one, alone = derived.preview_conjunctions(workspace, races, queries=5)
    assert library.list_names(workspace) == [races]
    made, out = derived.derive_parts(workspace, races, "cw", edges=[3], fewest=4)
    assert [(p.name, p.n_queries) for p in shown] == [(p.info.name, p.info.n_queries) for p in made]
    assert left_out == out == 0
    part, none = derived.derive_conjunctions(workspace, races, queries=5)
    assert (one.name, one.n_queries, alone) == (part.info.name, part.info.n_queries, none)
    words = [1, 3, 3]  # distinct content words: "ran", and "long" and "race" beside it
    assert [p.cw for p in shown] == [words[0], words[1]]


@pytest.mark.parametrize("text", ["six", "3.5", "-1", "٣", "1e3", "9" * 40])
def test_bounds_that_are_no_whole_numbers_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="where parts begin"):
        derived.edges_of(text)
    assert derived.edges_of(" 6, 9;12 ") == [6, 9, 12]
    assert derived.edges_of("  ") == []


def test_a_read_only_dashboard_looks_and_a_shared_one_names_no_folder(
    races: str, folder: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert derived.preview_parts(workspace, str(folder), "cw", edges=[3], fewest=4)  # the operator may name a folder
    modes.in_dashboard(shared=True)
    assert derived.preview_parts(workspace, races, "cw", edges=[3], fewest=4)
    for service in (derived.preview_parts, derived.derive_parts):
        with pytest.raises(NotAllowedError):
            service(workspace, str(folder), "cw", edges=[3])
    for joining in (derived.preview_conjunctions, derived.derive_conjunctions):
        with pytest.raises(NotAllowedError):
            joining(workspace, str(folder))
    monkeypatch.setenv(modes.READ_ONLY, "1")
    assert derived.preview_parts(workspace, races, "cw", edges=[3], fewest=4)
    with pytest.raises(ReadOnlyError):
        derived.derive_parts(workspace, races, "cw", edges=[3], fewest=4)
    with pytest.raises(ReadOnlyError):
        derived.derive_conjunctions(workspace, races)
    assert library.list_names(workspace) == [races]
