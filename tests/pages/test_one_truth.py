"""Labels and grades change the figures on Decide, Home, Compare, the label page and in commands, all at once."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cdp.base.config import ResultImportConfig
from cdp.base.workspace import REPOSITORY, Workspace
from cdp.benchmarks import judged
from cdp.cli import main
from cdp.services import jobs, judging, projects
from tests.judging.made import make
from tests.pages.conftest import Open
from tests.pages.test_every_page_in_every_state import words
from tests.services.test_decide import N_JUDGED, diverse_helps, run_study, sets_of, task

__all__ = ["task"]

pytestmark = pytest.mark.slow

# {face: what it says}
Faces = Callable[[], dict[str, str]]


def best_first(query: int, document: int) -> int:
    """The judge's grade: what the study's retrievers find first answers."""
    return 3 if document == 3 else 0


@pytest.fixture
def folder(workspace: Workspace, task: dict[str, str], tmp_path: Path, jobs_here: None) -> Path:
    """A judged benchmark in the corpus's project, a study on it, and two runs of another program."""
    made = make(workspace, best_first, n_queries=N_JUDGED)
    for name, order in (("up", (0, 1, 2, 3)), ("down", (3, 2, 1, 0))):
        file = tmp_path / f"{name}.txt"
        rows = [f"q{q} Q0 d{q}-{d} {rank} {10 - rank} {name}" for q in range(N_JUDGED) for rank, d in enumerate(order)]
        file.write_text("\n".join(rows))
        jobs.start(workspace, "import", ResultImportConfig(path=str(file), retriever=name, benchmark="made"))
    retrieved = lambda source, per_doc: [  # noqa: E731
        [f"d{i}-{d}" for d in range(4)][:: -1 if per_doc == 5 else 1] for i in range(N_JUDGED)
    ]
    benchmark = {"name": "made", "split": "test", "source": {"kind": judged.KIND, "judge": "a-model"}}
    run_study(workspace, sets_of(task), diverse_helps, benchmark=benchmark, retrieved=retrieved)
    projects.take_along(workspace, "corpus", task["corpus"], "made")
    return made


@pytest.fixture
def faces(
    workspace: Workspace, task: dict[str, str], open_page: Open, capsys: pytest.CaptureFixture[str], folder: Path
) -> Faces:
    def told(*command: str) -> str:
        capsys.readouterr()
        assert main(list(command)) == 0
        return capsys.readouterr().out

    def ask() -> dict[str, str]:
        pages = {
            "Decide": open_page("decide", corpus=task["corpus"], target_benchmark="made"),
            "Home": open_page("home"),
            "Compare": open_page("compare", benchmark="made", baseline="up"),
            "Label": open_page("benchmarks", tab="label", judged_benchmark="made"),
        }
        for page in pages.values():
            assert not page.exception
        return {
            **{name: words(page).replace("\\", "") for name, page in pages.items()},
            "decide": told("decide", "--corpus", task["corpus"], "--benchmark", "made"),
            "results compare": told("results", "compare", "--baseline", "up", "--benchmark", "made", "--json"),
        }

    return ask


def headline(told: str) -> str:
    # Up to the figures: a page keeps NDCG@10 from being an address.
    return told.splitlines()[0].partition("@")[0]


def test_compare_shows_both_bounds_of_a_difference_that_unjudged_documents_decide(
    workspace: Workspace, folder: Path, open_page: Open, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fifth of what "mixed" finds has no grade, and stands first: as irrelevant it loses, as relevant it gains."""
    file = tmp_path / "mixed.txt"
    found = [[f"d{(q + 1) % N_JUDGED}-0", *(f"d{q}-{d}" for d in (3, 2, 1, 0))] for q in range(N_JUDGED)]
    lines = [f"q{q} Q0 {d} {rank} {10 - rank} mixed" for q, row in enumerate(found) for rank, d in enumerate(row)]
    file.write_text("\n".join(lines))
    jobs.start(workspace, "import", ResultImportConfig(path=str(file), retriever="mixed", benchmark="made"))

    assert main(["results", "compare", "--baseline", "down", "--benchmark", "made", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    mixed, up = (next(r for r in rows if r["retriever_id"] == name) for name in ("mixed", "up"))
    # Second of two grades 3 where the first is irrelevant, first of two where it is relevant.
    second = 1 / np.log2(3)
    assert mixed["difference"] == pytest.approx(100 * (second - 1))
    assert mixed["if_relevant"] == pytest.approx(100 * (1 - 1 / (1 + second)))
    assert [mixed[name] for name in ("low", "high", "p_t", "p_holm")] == [None] * 4
    assert up["p_holm"] is not None
    assert up["if_relevant"] is None

    assert main(["results", "compare", "--baseline", "down", "--benchmark", "made"]) == 0
    bounds = "20% of the first tens are unjudged: −36.9 points if all are irrelevant, +38.7 if top-grade"
    told = capsys.readouterr().out
    assert "withheld" in told
    assert bounds in told
    page = open_page("compare", benchmark="made", baseline="down", retrievers="mixed")
    assert not page.exception
    shown = words(page).replace("\\", "")
    assert "Withheld on made" in shown
    assert bounds in shown
    assert "+38.69 if top-grade" in page.dataframe[0].value["95% interval"].tolist()


def labelled(workspace: Workspace, folder: Path, n: int) -> None:
    """People find that the first document answers, not the last."""
    pool = judged.read_pool(folder)
    for query in judged.sampled(pool)[:n]:
        documents = judged.to_label(pool, query)
        judging.label(workspace, "made", query, {d: "3" if d.endswith("-0") else "0" for d in documents}, "Ada")


def test_a_label_changes_every_face_at_once(workspace: Workspace, folder: Path, faces: Faces) -> None:
    before = faces()
    assert "No person checked the judgments of a-model" in before["Decide"]
    labelled(workspace, folder, 30)
    after = faces()
    for face in ("Decide", "Label", "decide"):
        assert "Corrected by 30 queries of people" in after[face], face
    assert "30 queries by people" in after["Home"]
    assert "Corrected by 30 queries of people" in after["Compare"]
    row = next(r for r in json.loads(after["results compare"])["rows"] if r["calibration"])
    assert row["calibration"]["state"] == "corrected"
    # The labels contradict the judge: what it preferred leads no longer.
    several = re.compile(r"[Ww]rite 5 \w+( queries)? per document")
    assert several.search(headline(before["decide"]))
    assert not several.search(headline(after["decide"]))
    for face in ("Decide", "Home"):
        assert headline(after["decide"]) in after[face], "one headline"
    undone = {face: text for face, text in faces().items() if text != after[face]}
    assert not undone, "asked again, it says the same"


def test_labels_of_a_second_process_a_file_and_a_changed_pool_reach_every_face(
    workspace: Workspace, task: dict[str, str], folder: Path, faces: Faces
) -> None:
    """What this process kept is not what it says: a fresh process is the oracle."""
    labelled(workspace, folder, 12)
    first = faces()
    assert "Corrected by 12 queries of people" in first["Compare"]

    def elsewhere(*command: str, keys: str = "") -> str:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "80"}
        command = (sys.executable, "-m", "cdp", *command)
        done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True, input=keys)
        return done.stdout

    decided = ("decide", "--corpus", task["corpus"], "--benchmark", "made")
    elsewhere("benchmarks", "label", "made", "--by", "Ada", keys="n\nq\n")
    second = faces()
    for face in ("Decide", "Compare", "decide"):
        assert "Corrected by 13 queries of people" in second[face], face
    assert "13 of 60 queries labelled by people" in second["Label"]
    assert second["decide"] == elsewhere(*decided)

    # By hand, as long as before and with the time of before: only the content tells.
    path = folder / "labels.jsonl"
    before, swapped = path.stat(), str.maketrans({"3": "0", "0": "3"})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["grades"] = {d: int(str(grade).translate(swapped)) for d, grade in line["grades"].items()}
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    text = text.ljust(before.st_size)
    with path.open("r+") as file:
        file.write(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    third = faces()
    for face in ("Decide", "Compare", "decide", "results compare"):
        assert third[face] != second[face], face
    assert third["decide"] == elsewhere(*decided)

    pool = judged.read_pool(folder)
    # Another retriever found more: the labelled queries are no longer whole, and the labels' file is the same.
    for query in judged.sampled(pool)[1:]:
        pool[query][f"d{(int(query[1:]) + 1) % N_JUDGED}-0"] = {"late": 1}
    judged.write_pool(folder, pool)
    fourth = faces()
    assert "1 of 60 queries labelled by people" in fourth["Label"]
    for face in ("Compare", "results compare"):
        assert "Corrected by" not in fourth[face], face
    row = next(r for r in json.loads(fourth["results compare"])["rows"] if r["calibration"])
    assert row["calibration"]["labelled_queries"] == 1
    assert fourth["decide"] == elsewhere(*decided)


def test_a_grade_changes_every_face_at_once(workspace: Workspace, folder: Path, faces: Faces) -> None:
    before = faces()
    judged.write_grades(
        folder, [judged.Grade(f"q{q}", f"d{q}-{d}", 3 - best_first(q, d)) for q in range(N_JUDGED) for d in range(4)]
    )
    after = faces()
    for face in ("Decide", "Home", "Compare", "decide", "results compare"):
        assert after[face] != before[face], face

    def difference(face: dict[str, str]) -> float:
        rows = json.loads(face["results compare"])["rows"]
        return next(float(r["difference"]) for r in rows if r["retriever_id"] == "down")

    assert difference(before) > 20
    assert difference(after) < -5
    for face in ("Decide", "Home"):
        assert headline(after["decide"]) in after[face], "one headline"


def test_unjudged_documents_withhold_the_answer_on_every_face(
    workspace: Workspace, task: dict[str, str], folder: Path, faces: Faces, open_page: Open
) -> None:
    """Without a key for the judge, too: what stands around its button stays."""
    late = [[f"late-{k}" for k in range(3)] + [f"d{i}-{d}" for d in range(4)] for i in range(N_JUDGED)]
    benchmark = {"name": "made", "split": "test", "source": {"kind": judged.KIND, "judge": "a-model"}}
    shutil.rmtree(workspace.job("study-1"))
    run_study(workspace, sets_of(task), diverse_helps, benchmark=benchmark, retrieved=lambda source, per_doc: late)
    said = faces()
    for face in ("Decide", "Home", "decide"):
        assert "Withheld: 43% of the first tens are unjudged." in said[face], face
        assert "points if all are irrelevant" in said[face], face
        assert not re.search(r"gains \d", said[face]), face
    page = open_page("decide", corpus=task["corpus"], target_benchmark="made", test="1")
    shown = words(page).replace("\\", "")
    assert "OpenAI needs an API key" in shown
    assert "What the trainings newly find is not judged unasked" in shown
    assert "trial_start" in {button.key for button in page.button}
