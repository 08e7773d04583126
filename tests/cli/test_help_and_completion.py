"""What somebody at a terminal is told: the overview of all commands, and what the shell completes."""

from __future__ import annotations

import os
import shutil
import subprocess
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


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from contextlib import redirect_stdout

    path = tmp_path_factory.mktemp("completion") / "cdp.bash"
    with path.open("w") as file, redirect_stdout(file):
        assert cli.main(["completion", "bash"]) == 0
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
    script: Path, tmp_path: Path, words: tuple[str, ...], offered: set[str]
) -> None:
    """In a real bash, as it calls the function when somebody presses the tab key."""
    if (bash := shutil.which("bash")) is None:
        pytest.skip("there is no bash on this machine")
    (tmp_path / "documents.jsonl").touch()
    code = 'source "$1"; shift; COMP_WORDS=(cdp "$@"); COMP_CWORD=$#; _shtab_cdp; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        [bash, "-c", code, "bash", str(script), *words], capture_output=True, text=True, cwd=tmp_path, env=os.environ
    )
    assert set(done.stdout.split()) == offered, done.stderr
