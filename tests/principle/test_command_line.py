"""The evidence and the recommendation from the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.cli import main
from cdp.principle import tables
from cdp.principle.tables import TABLES, table


@pytest.fixture(autouse=True)
def _own_workspace(workspace: Workspace) -> None:
    """Every command runs in an empty workspace."""


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_every_table_is_listed_and_can_be_shown_by_the_name_in_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(run(capsys, "published", "list", "--json"))
    assert len(listed) == len(TABLES)
    for info in listed:
        found = json.loads(run(capsys, "published", "show", info["name"], "--json"))
        assert found["title"] == info["title"]
        assert len(found["rows"]) == info["numbers"]


def test_a_table_as_printed_with_its_notes(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "published", "show", "multihop_scaling")
    assert "64.37●" in text
    assert "54.50 [1] [2]" in text
    assert "[1] RetroMAE's BEIR average" in text
    assert "[all rows]" in text


def test_a_table_as_csv_can_be_read_again() -> None:
    rows = list(csv.DictReader(io.StringIO(tables.to_csv(table("qd_full")))))
    assert len(rows) == 52
    assert {row["metric"] for row in rows} == {"Dist-Sim", "Len-Sim", "CE", "Self-BLEU"}


def test_an_unknown_table_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["published", "show", "nothing"]) == 2
    assert "No published table is called 'nothing'" in capsys.readouterr().err


def test_statistics_for_each_choice_of_datasets(capsys: pytest.CaptureFixture[str]) -> None:
    four = json.loads(run(capsys, "principle", "threshold", "--json"))
    every = json.loads(run(capsys, "principle", "threshold", "--datasets", "all", "--json"))
    assert (four["n_datasets"], every["n_datasets"]) == (4, 31)
    assert four["crossing"] == pytest.approx(7.91, abs=0.005)


def test_the_recommendation_is_the_answer_with_the_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "queries.txt"
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "theta", "iota", "kappa", "lambda", "sigma", "omega"]
    file.write_text("\n".join(" ".join(words[: 9 + i % 4]) for i in range(80)), encoding="utf-8")
    asked = ("--file", str(file), "--task", "multi-hop")
    found = json.loads(run(capsys, "cw", "recommend", *asked, "--json"))
    assert found["level"] == "recommend"
    assert found["answer"] == json.loads(run(capsys, "decide", *asked, "--json"))
    assert found["answer"]["badge"] == "other datasets only"
    text = run(capsys, "cw", "recommend", *asked)
    assert text.startswith("So far, write")
    assert "RECOMMEND" in text
    assert "four" in text
