"""A word that the command line does not know is refused in one sentence that offers the nearest one."""

from __future__ import annotations

import pytest

from cdp.base.workspace import Workspace
from cdp.cli import main


@pytest.mark.parametrize(
    ("words", "meant", "further"),
    [
        ("corpsu list", "corpus", "python -m cdp --help"),
        ("queries generat --corpus demo", "generate", "python -m cdp queries --help"),
        ("queries generate --corpus demo --generator tempalte", "template", "python -m cdp queries generate --help"),
        ("queries generate --corpus demo --genrator=template", "--generator", "python -m cdp queries generate --help"),
        ("cw profile --colour red", "", "python -m cdp cw profile --help"),
        ("queries generate", "", "required: --corpus, or --project NAME that has one. See: "),
        ("queries generate --corpus demo --per-doc five", "", "not 'five'. See: python -m cdp queries generate --help"),
        ("published show multihop_scalin", "multihop_scaling", ""),
        ("study plan qdoc_scaling", "qdoc-scaling", ""),
        ("queries generate --corpus demo --set per_dco=3", "per_doc", ""),
        ("train x --retriever minilm --set epochs", "", "--set field=value"),
        ("--json corpus list", "", "options come behind them. See: python -m cdp --help"),
        ("corpus --json list", "", "options come behind them. See: python -m cdp corpus --help"),
    ],
)
def test_a_misspelt_word_is_refused_in_one_line_with_the_nearest(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], words: str, meant: str, further: str
) -> None:
    code = main(words.split())
    said = capsys.readouterr()
    assert (code, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.err.startswith("cdp: ")
    assert further in said.err
    assert f"mean {meant}?" in said.err if meant else "mean" not in said.err
