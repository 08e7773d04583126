"""``benchmarks derive``, ``study pool`` and ``study bundle`` as they are typed, with what they refuse."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, library
from tests.benchmarks.folders import write_benchmark
from tests.cli.support import answer, refusal, run
from tests.studies.support import BENCHMARKS, N_QUERIES, stored

QUERIES = [{"_id": f"{2 + i % 2}hop__{i}", "text": f"Who ran {'the long race ' * (i % 3)}{i}?"} for i in range(12)]
DOCUMENTS = [{"_id": f"d{i}", "title": "", "text": f"the text of document number {i}"} for i in range(14)]
QRELS = "".join(f"{q['_id']}\td{i}\t1\n" for i, q in enumerate(QUERIES))


@pytest.fixture
def races(workspace: Workspace, tmp_path: Path) -> str:
    """A benchmark of twelve queries of two or three hops, with 1, 3 or 5 content words."""
    folder = write_benchmark(tmp_path / "races", documents=DOCUMENTS, queries=QUERIES, qrels={"test": QRELS})
    return add_benchmark(folder, workspace, language="en")


def test_parts_are_made_by_bounds_and_the_same_again(races: str, workspace: Workspace) -> None:
    words = ("benchmarks", "derive", races, "--by", "cw", "--at", "3", "--fewest", "4")
    made = answer(*words)
    assert [(b["name"], b["n_queries"], b["existed"]) for b in made["benchmarks"]] == [
        ("races-cw-0to2", 4, False),
        ("races-cw-from3", 8, False),
    ]
    assert made["left_out"] == 0
    assert [b["existed"] for b in answer(*words)["benchmarks"]] == [True, True]
    assert library.list_names(workspace) == ["races", "races-cw-0to2", "races-cw-from3"]
    text = run("benchmarks", "derive", races, "--by", "hops", "--fewest", "6").stdout
    assert text.splitlines() == [
        "races-hops-2: 6 queries, 14 documents",
        "races-hops-3: 6 queries, 14 documents",
    ]
    text = run("benchmarks", "derive", races, "--by", "cw", "--at", "3", "4", "--fewest", "8").stdout
    assert "left out: 4 queries" in text


def test_conjunctions_are_made(races: str) -> None:
    made = answer("benchmarks", "derive", races, "--conjunctions", "2", "--queries", "5")
    assert [(b["name"], b["n_queries"]) for b in made["benchmarks"]] == [("races-and2-5q", 5)]
    assert made["left_out"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "What is to be made of it?"),
        (["--by", "cw", "--conjunctions", "2"], "name one of them"),
        (["--conjunctions", "2", "--at", "3"], "name one of them"),
        (["--by", "cw", "--at", "9", "6"], "The edges must ascend"),
        (["--by", "cw", "--at", "3", "3"], "The edges must ascend"),
        (["--by", "cw", "--at", "900"], "not told apart by"),
        (["--by", "relevant"], "not told apart by"),
        (["--by", "cw", "--at", "3", "--fewest", "0"], "at least one query"),
        (["--by", "cw", "--at", "3", "--fewest", "100"], "No part of races has 100 queries"),
        (["--by", "hops", "--split", "dev"], "dev"),
        (["--conjunctions", "1"], "at least two queries"),
        (["--conjunctions", "0"], "at least two queries"),
        (["--conjunctions", "2", "--queries", "0"], "at least two queries"),
        (["--conjunctions", "13"], "no 13 queries"),
    ],
)
def test_what_cannot_be_derived_is_refused_in_a_line(
    words: list[str], says: str, races: str, workspace: Workspace
) -> None:
    assert says in refusal("benchmarks", "derive", races, *words)
    assert library.list_names(workspace) == [races]


def test_words_that_the_command_does_not_know_are_refused(races: str) -> None:
    assert "No benchmark is called 'racer'" in refusal("benchmarks", "derive", "racer", "--by", "cw")
    assert "There is: hops, relevant, cw." in refusal("benchmarks", "derive", races, "--by", "colour")
    assert "six" in refusal("benchmarks", "derive", races, "--by", "cw", "--at", "six")


def grows(name: str, source: str, per_doc: int, weighting: str) -> float:
    """Points by training: more queries per document help where there are many content words."""
    return 2.0 + (BENCHMARKS[name] - 7) * (per_doc - 1) / 4


@pytest.fixture
def two_studies(workspace: Workspace) -> list[str]:
    return [stored(workspace, f"study-{number}", grows) for number in (1, 2)]


def test_studies_are_pooled_into_one_model(two_studies: list[str]) -> None:
    alone, both = (answer("study", "pool", *ids)["models"] for ids in (two_studies[:1], two_studies))
    titles = [model["title"] for model in both]
    assert titles == [model["title"] for model in alone]
    slope = "More queries per document minus one, equal documents, out of domain: by content words"
    (of_one,), (of_two,) = ([model for model in models if model["title"] == slope] for models in (alone, both))
    assert (of_one["n_studies"], of_two["n_studies"]) == (1, 2)
    assert of_two["n"] == 2 * of_one["n"]
    (term,) = [term for term in of_two["terms"] if term["name"] == "cw"]
    assert term["low"] < term["value"] < term["high"]
    assert term["value"] == pytest.approx((0.25 + 1.0) / 2, abs=0.3)  # the slopes at Q/Doc 2 and 5
    twice = answer("study", "pool", two_studies[0], two_studies[0])["models"]
    assert [model["n"] for model in twice] == [model["n"] for model in alone]
    text = run("study", "pool", *two_studies).stdout
    assert slope in text
    assert "robust for families" in text


def test_what_cannot_be_pooled_is_refused_in_a_line(two_studies: list[str], workspace: Workspace) -> None:
    from tests.pages.support import ended_job

    ended_job(workspace, "training-1", "training", {})
    ended_job(workspace, "study-3", "study", {}, outcome="failed", failure={"message": "No memory.", "kind": "bug"})
    assert "is of kind training" in refusal("study", "pool", two_studies[0], "training-1")
    assert "nothing to report yet: No memory." in refusal("study", "pool", *two_studies, "study-3")
    assert "study-9" in refusal("study", "pool", "study-9")
    assert "required" in run("study", "pool", code=2).stderr


@pytest.mark.slow
def test_a_bundle_holds_every_score_and_is_the_same_again(
    two_studies: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / "new" / "a.zip", tmp_path / "b.zip"]
    told = [answer("study", "bundle", "study-1", "--out", str(file)) for file in files]
    assert [t["bytes"] for t in told] == [file.stat().st_size for file in files]
    assert files[0].read_bytes() == files[1].read_bytes()
    with zipfile.ZipFile(io.BytesIO(files[0].read_bytes())) as archive:
        assert archive.testzip() is None
        scores = gzip.decompress(archive.read("scores.csv.gz")).decode().splitlines()
        assert len(scores) - 1 == (1 + 3 * 3) * len(BENCHMARKS) * N_QUERIES
        assert len(json.loads(archive.read("settings.json"))) == 1 + 3 * 3
        assert b"static" not in archive.read("commands.txt")
        assert b"study report study-1" in archive.read("commands.txt")
        assert archive.read("report.html").lstrip().startswith(b"<!doctype html")
    monkeypatch.chdir(tmp_path)
    assert run("study", "bundle", "study-1").stdout == "written: study-1.zip\n"
    assert (tmp_path / "study-1.zip").read_bytes() == files[0].read_bytes()


@pytest.mark.slow
def test_a_study_with_a_failed_training_is_bundled_with_the_failure(workspace: Workspace, tmp_path: Path) -> None:
    stored(workspace, "study-1", grows, failures=[("static, Q/Doc 5, seed 2", "No memory.")])
    file = tmp_path / "a.zip"
    answer("study", "bundle", "study-1", "--out", str(file))
    with zipfile.ZipFile(file) as archive:
        assert b"No memory." in archive.read("settings.json")
        assert b"No memory." in archive.read("report.md")


@pytest.mark.slow
def test_what_cannot_be_bundled_is_refused_in_a_line(
    two_studies: list[str], workspace: Workspace, tmp_path: Path
) -> None:
    from tests.pages.support import ended_job

    ended_job(workspace, "study-3", "study", {}, outcome="failed", failure={"message": "No memory.", "kind": "bug"})
    assert "study-9" in refusal("study", "bundle", "study-9")
    assert "nothing to report yet: No memory." in refusal("study", "bundle", "study-3")
    (tmp_path / "file").write_text("")
    assert refusal("study", "bundle", "study-1", "--out", str(tmp_path / "file" / "a.zip"))
    assert refusal("study", "bundle", "study-1", "--out", str(tmp_path))
    assert sorted(tmp_path.glob("*.zip")) == []
