"""The page of benchmarks: size and licence stand before a download, what is here is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, library
from cdp.benchmarks.download import download_benchmark
from cdp.benchmarks.registry import find
from cdp.services import jobs
from tests.benchmarks import published
from tests.benchmarks.folders import write_benchmark
from tests.benchmarks.published import put
from tests.pages.conftest import Open
from tests.pages.test_every_page_in_every_state import words


def stored(workspace: Workspace, name: str, folder: Path) -> None:
    entry = find(name)
    assert entry is not None
    download_benchmark(entry, workspace, folder=folder)


def test_a_link_opens_a_benchmark_with_its_size_and_licence(open_page: Open, workspace: Workspace) -> None:
    at = open_page("benchmarks", entry="nq")
    said = words(at).replace("\\", "")
    assert "Natural Questions" in said
    assert "cc-by-sa-4.0 (hub card of BEIR; of the data itself MTEB says: cc-by-nc-sa-3.0)" in said
    assert {m.label: m.value for m in at.metric}["Documents"] == "2,681,468"
    assert at.button(key="download_nq_start").label == "Download"


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_a_download_becomes_a_job(open_page: Open, workspace: Workspace) -> None:
    at = open_page("benchmarks", entry="scifact")
    at.button(key="download_scifact_start").click().run()
    assert not at.exception
    (job,) = jobs.list_jobs(workspace)
    assert (job.kind, job.config["benchmark"]) == ("download", "scifact")
    assert at.title[0].value == "Jobs"


def test_a_folder_that_is_not_the_benchmark_gives_one_box(
    open_page: Open, workspace: Workspace, tmp_path: Path
) -> None:
    at = open_page("benchmarks", entry="musique")
    at.text_input(key="download_musique_folder").set_value(str(tmp_path)).run()
    at.button(key="download_musique_start").click().run()
    assert "is not MuSiQue as it is published" in at.error[0].proto.title.replace("\\", "")
    assert jobs.list_jobs(workspace) == []


def test_what_is_here_is_told(open_page: Open, workspace: Workspace, tmp_path: Path) -> None:
    stored(workspace, "bright-biology", put(tmp_path, published.bright()))
    at = open_page("benchmarks", entry="bright-biology")
    assert list(at.dataframe[1].value["Status"]).count("downloaded") == 1
    at.session_state["command-benchmarks-sample"] = True
    at.run()
    assert not at.exception
    assert "In the workspace as" in words(at)
    assert [c.value for c in at.code] == ["python -m cdp benchmarks sample bright-biology"]


def test_an_own_zip_is_added_and_removed(open_page: Open, workspace: Workspace, tmp_path: Path) -> None:
    add_benchmark(write_benchmark(tmp_path / "mine"), workspace)
    at = open_page("benchmarks")
    at.button(key="delete_benchmark_mine").click().run()  # in a popover that asks
    assert library.list_names(workspace) == []
    at = open_page("benchmarks")
    at.segmented_control(key="benchmark_own_source_way").set_value("Path on this server").run()
    at.text_input(key="benchmark_own_source_path").set_value(str(tmp_path / "mine")).run()
    at.button(key="benchmark_own_add").click().run()
    assert library.list_names(workspace) == ["mine"]
    assert "The benchmark mine is added" in at.success[0].proto.title.replace("\\", "")


def test_the_page_opens_on_ones_own_collections_with_downloads_behind_add(
    open_page: Open, workspace: Workspace, tmp_path: Path
) -> None:
    at = open_page("benchmarks")
    assert "No collection yet" in words(at)
    (known,) = [folded for folded in at.expander if folded.label.startswith("Add a published benchmark")]
    assert not known.proto.expanded
    assert len(known.dataframe) == 1, "the forty downloads are in it"
    add_benchmark(write_benchmark(tmp_path / "mine"), workspace)
    stored(workspace, "bright-biology", put(tmp_path, published.bright()))
    at = open_page("benchmarks")
    assert sorted(at.dataframe[0].value["Benchmark"]) == ["bright-biology", "mine"], "downloaded ones are one's own"
    (known,) = [folded for folded in at.expander if folded.label.startswith("Add a published benchmark")]
    assert not known.proto.expanded
    at.run()
    (known,) = [folded for folded in at.expander if folded.label.startswith("Add a published benchmark")]
    assert not known.proto.expanded
    linked = open_page("benchmarks", entry="nq")
    (known,) = [folded for folded in linked.expander if folded.label.startswith("Add a published benchmark")]
    assert known.proto.expanded
