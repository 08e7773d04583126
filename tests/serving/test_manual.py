"""docs/SERVING.md: its examples are run against a server of the demo, and it names every code there is."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cdp.base.config import TOKEN
from cdp.base.workspace import Workspace
from tests.documents.examples import commands, examples, reader, script
from tests.serving.support import command_config, serving
from tests.support import REPOSITORY

MANUAL = REPOSITORY / "docs" / "SERVING.md"


@pytest.mark.slow
def test_the_manuals_examples(demo_workspace: Workspace, tmp_path: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("curl is not on this machine")
    blocks = [block for block in examples(MANUAL) if block.mark == "run by"]
    for words in [words for block in blocks for words in commands(block) if words[:1] == ["serve"]]:
        assert command_config(words).retriever
    asking = [block for block in blocks if "127.0.0.1:8600" in block.text]
    assert [block.language for block in asking] == ["python", "bash"]
    environment = reader(tmp_path)
    with serving(demo_workspace, "static-minilm", corpus="demo") as server:
        client, shell = (block.text.replace("http://127.0.0.1:8600", server.address) for block in asking)
        assert server.address in client
        (tmp_path / "client.py").write_text(client, encoding="utf-8")
        answers = runpy.run_path(str(tmp_path / "client.py"))
        assert [len(answers[name].data) for name in ("documents", "query")] == [2, 1]
        done = subprocess.run(
            ["bash", "-c", script([replace(asking[1], mark="", text=shell)])],
            capture_output=True, text=True, cwd=tmp_path, env=environment,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '"error"' not in done.stdout
    assert done.stdout.count('"object":"search.result"') == 2
    token = next(block for block in blocks if "token_urlsafe" in block.text)
    line = token.text.splitlines()[0]
    subprocess.run(["bash", "-c", line], check=True, cwd=tmp_path, env=environment)
    assert len((tmp_path / "token").read_text().strip()) >= 32


def test_the_manual_says_what_there_is() -> None:
    manual = MANUAL.read_text(encoding="utf-8")
    assert TOKEN in manual
    room = REPOSITORY / "cdp" / "serving"
    text = "".join(path.read_text(encoding="utf-8") for path in (room / "web.py", room / "public.py"))
    codes = set(re.findall(r'ApiError\(\s*\d+,\s*"(\w+)"', text))
    assert {"host_not_allowed", "request_too_large", "invalid_value"} <= codes
    assert [code for code in sorted(codes) if f"`{code}`" not in manual] == []
