"""Errors, rejected rows and failures show no character that a terminal obeys or that reorders the text beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.base.errors import ConfigError, InputError, NotFoundError, visible
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark
from cdp.corpus import read_documents
from cdp.query_sets.imports import ImportOptions, read_path

ODD = "a\x1b[31m\x07\x9b\u202e\u2028b"
SHOWN = "a\\x1b[31m\\x07\\x9b\\u202e\\u2028b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (ODD, SHOWN),
        ("\udc80\x00\x7f", "\\udc80\\x00\\x7f"),
        ("over\rwritten", "over\\rwritten"),
        # Layout, and joiners inside words of many scripts.
        ("two\r\nlines\n\tand a tab", "two\r\nlines\n\tand a tab"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f680", None),
    ],
)
def test_visible(text: str, shown: str | None) -> None:
    assert visible(text) == (text if shown is None else shown)


def test_every_error_is_visible() -> None:
    for error in (
        InputError(f"The field {ODD} is missing.", hint=ODD, file=ODD),
        ConfigError.from_problems([ODD]),
        NotFoundError("corpus", ODD, known=[ODD]),
    ):
        assert visible(str(error)) == str(error)
        assert "\\x1b" in str(error)


def _errors(path: Path, workspace: Workspace) -> list[str]:
    said = []
    try:
        with read_documents(path) as result:
            said += [rejected.excerpt + rejected.reason for rejected in result.rejected]
    except InputError as error:
        said.append(str(error))
    try:
        said += [row.reason for row in read_path(path, ImportOptions())]
    except InputError as error:
        said.append(str(error))

    folder = path.parent / "benchmark"
    folder.mkdir()
    (path.rename(folder / "corpus.jsonl")).touch()
    with pytest.raises(InputError) as refused:
        add_benchmark(folder, workspace)
    return [*said, str(refused.value)]


@pytest.mark.parametrize(
    "content",
    [
        "{}\n".join([ODD, ODD]),
        json.dumps({ODD: "t"}),
        json.dumps({"_id": ODD, "text": "t"}) + '\n{"_id": "b", "text": "u"}',
        json.dumps({"_id": "b", "text": [ODD]}, ensure_ascii=False),
    ],
)
def test_what_is_said_of_damaged_files_is_visible(workspace: Workspace, tmp_path: Path, content: str) -> None:
    (tmp_path / "odd.jsonl").write_text(content, encoding="utf-8")
    said = _errors(tmp_path / "odd.jsonl", workspace)
    assert said
    assert [text for text in said if text != visible(text)] == []
