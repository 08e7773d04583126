"""What deploy/ starts is what the command line takes, with files that exist; systemd reads it without complaint."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from cdp.base.config import ServingConfig
from tests.serving.support import command_config
from tests.support import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
UNIT = DEPLOY / "cdp-serve.service"


def config(words: list[str]) -> ServingConfig:
    """The settings that the command line's own parser makes of these words."""
    assert words[0] == "cdp"
    return command_config(words[1:])


def instructions() -> list[tuple[str, str]]:
    """(instruction, the rest) of the Containerfile, lines that are continued put together."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    lines = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.strip().partition(" ") for line in lines if line.strip())]


def test_the_container_starts_a_server_that_others_reach_with_a_token() -> None:
    listed = instructions()
    last = dict(listed)
    made = config([*json.loads(last["ENTRYPOINT"]), *json.loads(last["CMD"])])
    assert (made.host, str(made.port)) == ("0.0.0.0", last["EXPOSE"])
    assert made.token_file
    assert f":{made.port}/readyz" in dict(listed)["HEALTHCHECK"]
    assert last["USER"] not in ("", "root", "0")
    stages = [rest for name, rest in listed if name == "FROM"]
    assert len(stages) == 2
    assert len({stage.partition(" ")[0] for stage in stages}) == 1, "both stages have the same Python"
    final = listed[len(listed) - 1 - [name for name, _ in reversed(listed)].index("FROM") :]
    assert not [rest for name, rest in final if name == "COPY" and not rest.startswith("--from=build ")], "no sources"
    assert any("--constraint constraints.txt" in rest for name, rest in listed if name == "RUN")


def test_the_container_is_built_from_what_the_wheel_needs_and_no_workspace() -> None:
    names = (DEPLOY / "Containerfile.containerignore").read_text(encoding="utf-8").split()
    kept = [name.removeprefix("!") for name in names if name.startswith("!")]
    assert [name for name in kept if not (REPOSITORY / name).exists()] == []
    assert names[0] == "**"
    assert names.index("data/workspace") > names.index("!data")
    assert {"cdp", "app.py", "pages", "data", "pyproject.toml", "constraints.txt"} <= set(kept)


def test_the_unit_starts_a_server_on_loopback_with_a_token() -> None:
    text = UNIT.read_text(encoding="utf-8")
    settings = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and line[0].isalpha())
    words = shlex.split(settings["ExecStart"])
    made = config(["cdp", *words[1:]])
    assert words[0].endswith("/cdp")
    assert made.host == "127.0.0.1"
    assert made.token_file == "${CREDENTIALS_DIRECTORY}/token"
    assert settings["LoadCredential"].startswith("token:")
    assert settings["Type"] == "notify"
    assert int(settings["TimeoutStopSec"]) > made.grace_s, "systemd must not kill before the server gives up"
    assert int(settings["LimitNOFILE"]) > made.max_connections


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not on this machine")
def test_systemd_reads_the_unit_without_complaint(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    there = shutil.which("env") or ""
    copy.write_text(UNIT.read_text(encoding="utf-8").replace("/opt/cdp/bin/cdp", there), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    words = ["systemd-analyze", "security", "--offline=yes", "--threshold=25", "--no-pager", str(copy)]
    assert subprocess.run(words, capture_output=True).returncode == 0, "exposure above 2.5 of 10"
