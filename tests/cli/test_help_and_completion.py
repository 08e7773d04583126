"""What a terminal shows: the overview of all commands, how fast, and what a real shell completes."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from cdp import cli
from cdp.cli.declare import all_commands
from tests.support import REPOSITORY


def test_the_help_names_every_command_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(listed) == sorted({name.partition(" ")[0] for name in all_commands()})
    assert len(lines) <= 36
    assert max(map(len, lines)) <= 80


def test_help_and_version_load_no_room() -> None:
    """They answer before pydantic, argparse or any room would be loaded."""
    code = (
        "import sys; from cdp.cli import main; main(['--version']); main(['--help']);"
        "print(sorted({'pydantic', 'argparse', 'numpy', 'pyarrow', 'cdp.jobs'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_commands_options_choices_and_files(shell: str, tmp_path: Path) -> None:
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"there is no {shell} on this machine")
    with (tmp_path / "script").open("w") as file, redirect_stdout(file):
        assert cli.main(["completion", shell]) == 0
    (tmp_path / "documents.jsonl").touch()
    expected = {
        "cdp cor": "cdp corpus",
        "cdp jobs res": "cdp jobs resume",
        "cdp queries export x --per": "cdp queries export x --per-doc",
        "cdp train x --weighting ri-": "cdp train x --weighting ri-cw",
        "cdp corpus add docu": "cdp corpus add documents.jsonl",
    }
    assert pressed_tab(program, list(expected), tmp_path) == list(expected.values())


def pressed_tab(shell: str, typed: list[str], folder: Path) -> list[str]:
    """Type each of these and the tab key into an interactive shell; the lines that come of it."""
    controller, terminal = pty.openpty()
    plain = ["--norc", "--noprofile"] if shell.endswith("bash") else ["-f"]
    environment = {**os.environ, "TERM": "dumb", "PS1": "", "HOME": str(folder)}
    process = subprocess.Popen(
        [shell, *plain, "-i"], stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder, env=environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    load = "autoload -Uz compinit && compinit -u -D; source ./script" if shell.endswith("zsh") else "source ./script"
    keys = [f"{load}\n", *(f"{line}\t\x01echo LINE \n" for line in typed), "exit\n"]
    os.write(controller, "".join(keys).encode())
    said = b""
    try:
        while chunk := os.read(controller, 65536):
            said += chunk
    except OSError:  # the shell has closed its terminal
        pass
    process.wait(30)
    os.close(controller)
    lines = said.decode().replace("\r", "\n").splitlines()
    return [line.removeprefix("LINE ").strip() for line in lines if line.startswith("LINE ")]
