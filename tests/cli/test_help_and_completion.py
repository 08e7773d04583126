"""What somebody at a terminal is told: the overview of all commands, and what the shell completes."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from cdp import cli
from cdp.cli.options import commands
from cdp.cli.overview import SECTIONS


def test_the_help_names_every_command_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    first_words = {name.partition(" ")[0] for name in commands()}
    listed = [word for words in SECTIONS.values() for word in words]
    assert sorted(listed) == sorted(first_words), "cdp.cli.overview.SECTIONS has every command once"
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert first_words <= {line.split()[0] for line in lines if line.startswith("  ")}
    assert len(lines) <= 36
    assert max(map(len, lines)) <= 80


def script(shell: str, folder: Path) -> Path:
    """What ``cdp completion SHELL`` prints, in a file."""
    path = folder / f"cdp.{shell}"
    with path.open("w") as file, redirect_stdout(file):
        assert cli.main(["completion", shell]) == 0
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("cor",), {"corpus"}),
        (("jobs", "re"), {"resume"}),
        (("queries", "export", "x", "--per"), {"--per-doc"}),
        (("train", "x", "--weighting", "ri"), {"ri", "ri-cw"}),
        (("corpus", "add", "docu"), {"documents.jsonl"}),
    ],
)
def test_bash_completes_commands_options_choices_and_files(
    tmp_path: Path, words: tuple[str, ...], offered: set[str]
) -> None:
    """In a real bash, as it calls the function when somebody presses the tab key."""
    if (bash := shutil.which("bash")) is None:
        pytest.skip("there is no bash on this machine")
    (tmp_path / "documents.jsonl").touch()
    code = 'source "$1"; shift; COMP_WORDS=(cdp "$@"); COMP_CWORD=$#; _shtab_cdp; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        [bash, "-c", code, "bash", str(script("bash", tmp_path)), *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ,
    )
    assert set(done.stdout.split()) == offered, done.stderr


ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; autoload -Uz compinit; compinit -u -D; eval \"\$(<$1)\"; print READY"
while zpty -r shell line; do [[ $line == READY* ]] && break; done
zpty -w -n shell "$2"$'\t'
zpty -w shell $'\C-aprint -r -- LINE '
while zpty -r shell line; do [[ $line == LINE* ]] && print -r -- $line && break; done
zpty -d shell
"""
"""Types words and the tab key into an interactive zsh, and has it print the line that came of them."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("cdp cor", "cdp corpus"),
        ("cdp jobs re", "cdp jobs resume"),
        ("cdp train x --weighting ri-", "cdp train x --weighting ri-cw"),
        ("cdp corpus add docu", "cdp corpus add documents.jsonl"),
    ],
)
def test_zsh_completes_commands_choices_and_files(tmp_path: Path, typed: str, line: str) -> None:
    if (zsh := shutil.which("zsh")) is None:
        pytest.skip("there is no zsh on this machine")
    (tmp_path / "documents.jsonl").touch()
    done = subprocess.run(
        [zsh, "-f", "-c", ZSH, "zsh", str(script("zsh", tmp_path)), typed],
        capture_output=True, text=True, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == f"LINE {line}", done.stderr
