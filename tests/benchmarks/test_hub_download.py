"""Downloading from the hub: the library's own code against a server on this machine that speaks its API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdp.base.errors import ConfigError, InputError
from cdp.base.worker import Stopped
from cdp.base.workspace import Workspace
from cdp.benchmarks import BenchmarkInfo, download, load_benchmark, manifests, remove_benchmark
from cdp.benchmarks.download import download_benchmark
from cdp.benchmarks.registry import find
from tests.benchmarks import published
from tests.benchmarks.hub_server import Hub, Server

pytestmark = pytest.mark.slow

Bring = Callable[..., tuple[BenchmarkInfo, bool]]
URLOPEN = download.urlopen


def plain_files_at(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send requests for plain files to a server of this machine, by the files' names."""
    monkeypatch.setattr(download, "urlopen", lambda url, **more: URLOPEN(f"{address}/{url.rpartition('/')[2]}", **more))


@pytest.fixture
def the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    found = Hub()
    with Server(found):
        monkeypatch.setenv("HF_ENDPOINT", found.address)
        plain_files_at(f"{found.address}/elsewhere", monkeypatch)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        yield found


@pytest.fixture
def fetch(workspace: Workspace) -> Bring:
    def fetched(wanted: str, /, **options: object) -> tuple[BenchmarkInfo, bool]:
        entry = find(wanted)
        assert entry is not None
        return download_benchmark(entry, workspace, **options)  # type: ignore[arg-type]

    return fetched


def scifact(the_hub: Hub) -> tuple[str, str]:
    collection, qrels = published.beir_jsonl()
    return the_hub.commit("BeIR/scifact", collection), the_hub.commit("BeIR/scifact-qrels", qrels)


def test_main_is_resolved_once_and_its_commits_are_recorded(the_hub: Hub, fetch: Bring, workspace: Workspace) -> None:
    first, second = scifact(the_hub)
    assert not fetch("scifact")[1]
    manifest = manifests.read(workspace.benchmarks / "scifact")
    assert manifest.commits == {"BeIR/scifact": first, "BeIR/scifact-qrels": second}
    assert load_benchmark(workspace.benchmarks / "scifact").n_queries == 2
    assert sorted(path.rpartition("/")[2] for path in the_hub.fetched()) == [
        "corpus.jsonl.gz",
        "queries.jsonl.gz",
        "test.tsv",
    ]
    assert not (workspace.benchmarks / ".downloads" / "scifact").exists()


@pytest.mark.slow
def test_a_later_commit_is_not_taken_unless_it_is_asked_for(the_hub: Hub, fetch: Bring, workspace: Workspace) -> None:
    scifact(the_hub)
    fetch("scifact")
    changed = dict(published.beir_jsonl()[0])
    changed["corpus.jsonl.gz"] = published.lines([*published.DOCUMENTS, {"_id": "d4", "text": "new"}], packed=True)
    new = the_hub.commit("BeIR/scifact", changed)
    assert fetch("scifact")[1]
    with pytest.raises(ConfigError, match="another benchmark called 'scifact'"):
        fetch("scifact", revision=new)
    remove_benchmark("scifact", workspace)
    assert fetch("scifact", revision=new)[0].n_documents == 4


def test_a_revision_names_a_commit_of_the_first_repository(the_hub: Hub, fetch: Bring) -> None:
    old, _ = scifact(the_hub)
    the_hub.commit("BeIR/scifact", {"README.md": b"moved away"})
    with pytest.raises(ConfigError, match="no revision 'gone'"):
        fetch("scifact", revision="gone")
    assert fetch("scifact", revision=old)[0].n_documents == 3


def test_a_repository_whose_layout_has_changed_is_told(the_hub: Hub, fetch: Bring) -> None:
    scifact(the_hub)
    the_hub.commit("BeIR/scifact", {"README.md": b"moved away"})
    with pytest.raises(InputError, match=r"has no corpus: corpus\.jsonl or corpus\.jsonl\.gz"):
        fetch("scifact")


@pytest.mark.slow
def test_a_broken_connection_is_gone_on_from(the_hub: Hub, fetch: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 512)  # so that a small file has many
    collection, qrels = published.beir_jsonl()
    rows = [{"_id": f"d{i}", "title": "", "text": f"{i} " * 400} for i in range(1, 400)]
    the_hub.commit("BeIR/scifact", {**collection, "corpus.jsonl.gz": published.lines(rows, packed=True)})
    the_hub.commit("BeIR/scifact-qrels", qrels)
    the_hub.cut.add("corpus.jsonl.gz")
    assert fetch("scifact")[0].n_documents == 399
    ranges = [asked for method, path, asked in the_hub.asked if method == "GET" and path.endswith("corpus.jsonl.gz")]
    assert ranges[0] == ""
    assert ranges[1].startswith("bytes=")
    assert ranges[1] != "bytes=0-"


def test_a_stopped_download_keeps_its_files(the_hub: Hub, fetch: Bring, workspace: Workspace) -> None:
    scifact(the_hub)
    asked = iter([False] * 4)

    def progress(*_: object) -> None:
        if next(asked, True):
            raise Stopped

    with pytest.raises(Stopped):
        fetch("scifact", progress=progress)
    assert not (workspace.benchmarks / "scifact").exists()
    before = len(the_hub.fetched())
    assert fetch("scifact")[0].n_documents == 3
    assert not [path for path in the_hub.fetched()[before:] if path.endswith("corpus.jsonl.gz")]


def test_progress_counts_bytes_and_then_documents(the_hub: Hub, fetch: Bring) -> None:
    scifact(the_hub)
    told: list[tuple[str, int, int]] = []
    fetch("scifact", progress=lambda *step: told.append(step))
    sizes = [done for phase, done, _ in told if phase == "downloading"]
    assert sizes == sorted(sizes)
    assert sizes[-1] == max(total for phase, _, total in told if phase == "downloading")
    assert ("writing documents", 3, 5183) in told


def test_trec_dl_brings_its_files_from_three_places(the_hub: Hub, fetch: Bring, workspace: Workspace) -> None:
    passages, elsewhere = published.trec_dl("2020")
    the_hub.commit("BeIR/msmarco", passages)
    the_hub.plain.update(elsewhere)
    assert fetch("trec-dl-2020")[0].n_queries == 2
    manifest = manifests.read(workspace.benchmarks / "trec-dl-2020")
    assert manifest.source["addresses"][0] == "https://trec.nist.gov/data/deep/2020qrels-pass.txt"
    assert {file["role"] for file in manifest.files} == {"corpus", "queries", "qrels"}


@pytest.mark.parametrize(
    ("name", "repositories"),
    [
        ("bright-biology", {"xlangai/BRIGHT": published.bright()}),
        ("miracl-ko", dict(zip(("miracl/miracl", "miracl/miracl-corpus"), published.miracl(), strict=True))),
        ("nanoscifact", {"zeta-alpha-ai/NanoSciFact": published.nano()}),
        ("musique", {"dgslibisey/MuSiQue": published.musique()}),
        ("2wikimultihopqa", {"xanhho/2WikiMultihopQA": published.two_wiki(as_text=True)}),
        ("novelhopqa", {"abhaygupta1266/novelhopqa": published.novelhop()}),
        ("cqadupstack-tex", {"mteb/cqadupstack-tex": published.mteb_forum()}),
    ],
)
def test_every_family_comes_from_its_repositories(
    the_hub: Hub, fetch: Bring, workspace: Workspace, name: str, repositories: dict[str, dict[str, bytes]]
) -> None:
    for repository, files in repositories.items():
        the_hub.commit(repository, files)
    assert fetch(name)[0].judged
    assert load_benchmark(workspace.benchmarks / name).n_documents >= 3


def test_a_closed_repository_says_how_to_open_it(the_hub: Hub, fetch: Bring) -> None:
    scifact(the_hub)
    the_hub.gated.add("BeIR/scifact")
    with pytest.raises(ConfigError, match="asks for consent") as caught:
        fetch("scifact")
    assert "HF_TOKEN" in caught.value.hint


def test_a_repository_that_is_not_there(the_hub: Hub, fetch: Bring) -> None:
    with pytest.raises(ConfigError, match="BeIR/scifact is no dataset repository"):
        fetch("scifact")


def test_without_a_network_it_says_what_to_do(
    fetch: Bring, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(download.DownloadError) as caught:
        fetch("scifact")
    assert caught.value.kind == "network"
    assert "hf download BeIR/scifact-qrels --repo-type dataset" in caught.value.hint
    assert "benchmarks download scifact --folder FOLDER" in caught.value.hint
    assert not (workspace.benchmarks / "scifact").exists()


def test_a_plain_address_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_files_at("http://127.0.0.1:9", monkeypatch)
    with pytest.raises(download.DownloadError, match="cannot be fetched"):
        download.fetch_address("https://example.org/a.txt", tmp_path)
    assert list(tmp_path.glob("a.txt")) == []


def test_a_plain_file_that_breaks_off_is_no_file(the_hub: Hub, tmp_path: Path) -> None:
    the_hub.plain["qrels.txt"] = b"1 Q0 d1 1\n" * 1000
    the_hub.cut.add("qrels.txt")
    with pytest.raises(download.DownloadError, match=r"cannot be fetched: IncompleteRead.5000 bytes read, 5000 more"):
        download.fetch_address("https://example.org/qrels.txt", tmp_path)
    assert not (tmp_path / "qrels.txt").exists()
    assert download.fetch_address("https://example.org/qrels.txt", tmp_path).stat().st_size == 10_000


def test_a_plain_address_that_leads_elsewhere_is_not_followed(
    the_hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    the_hub.plain["status"] = b"what only this machine may read"
    the_hub.leads["qrels.txt"] = f"{the_hub.address}/status"
    with pytest.raises(download.DownloadError, match="cannot be fetched: HTTP Error 302"):
        download.fetch_address("https://example.org/qrels.txt", tmp_path)
    assert [path for _, path, _ in the_hub.asked] == ["/elsewhere/qrels.txt"]
    assert list(tmp_path.iterdir()) == []


def test_offline_mode_is_named(fetch: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(download.DownloadError, match="HF_HUB_OFFLINE"):
        fetch("scifact")
