"""``cw``, ``metrics`` and ``prompts`` on queries at the edge, and what they refuse: one sentence each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdp.base.workspace import Workspace
from cdp.cli import main
from cdp.corpus import looking
from cdp.services import corpora, queries

pytestmark = pytest.mark.slow


def cw(capsys: pytest.CaptureFixture[str], file: Path, *words: str) -> dict[str, Any]:
    assert main(["cw", "profile", "--file", str(file), "--json", *words]) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("text", "language", "mean"),
    [
        ("🙂\n🙂🌊", "en", 0.0),
        (
            " ".join(f"q{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}" for i in range(10_000)),
            "en",
            1e4,
        ),
        ("ما سبب المد والجزر في البحار؟", "ar", None),
        ("what is 鉄 rust", "en", 1.0),
        ("rust\n\n  \nrust", "en", 1.0),
    ],
)
def test_cw_of(
    text: str, language: str, mean: float | None, workspace: Workspace, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    file = tmp_path / "queries.txt"
    file.write_text(text, encoding="utf-8")
    found = cw(capsys, file)
    assert found["language"] == language
    if mean is not None:
        assert found["mean"] == mean
    answered = main(["cw", "recommend", "--file", str(file)])
    assert answered == (2 if mean == 0 else 0)
    assert ("has a content word" in capsys.readouterr().err) is (mean == 0)


def test_queries_counted_in_another_language_are_doubted(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "queries.txt"
    file.write_text("რა არის მოქცევა?\nრატომ იწევს ზღვა?", encoding="utf-8")
    assert main(["cw", "profile", "--file", str(file), "--language", "en"]) == 0
    assert "100% of the queries have no content word when counted as English" in capsys.readouterr().out


def test_metrics_of_one_query_per_document(
    with_demo: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = corpora.list_corpora(with_demo)[0]
    rows = [
        {"document_id": d.id, "queries": ["what causes the tides"]} for d in looking.page(with_demo, corpus.id, 0, 3)
    ]
    file = tmp_path / "one.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = queries.import_file(with_demo, file, corpus.id, name="one").query_set
    assert main(["metrics", found.id, "--quick", "--json"]) == 0
    values = {v["name"]: v for v in json.loads(capsys.readouterr().out)["measures"]}
    assert values["self_bleu"]["value"] is None
    assert "No document has two queries" in values["self_bleu"]["reason"]
    assert values["cw"]["value"] == 2.0


def test_prompts_that_cannot_be_tried(with_demo: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    tune = ("prompts", "tune", "--corpus", "demo")
    assert "at least two candidates" in refused(capsys, *tune, "--methods", "diverse")
    assert "no such file" in refused(capsys, *tune, "--prompt", "nowhere.txt").lower()
    assert "must be at least 2" in refused(capsys, *tune, "--per-doc", "1")
    assert "nothing" in refused(capsys, "prompts", "show", "nothing")
