"""``python findings/run.py [NAME …]``: run findings in a temporary folder, each with the packages that it pins.

A new environment for each, made by pip; nothing of this repository is on its path. Exit code 1 where one has changed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def dependencies(script: Path) -> list[str]:
    """Return the pinned packages of a script's PEP 723 header."""
    header = re.search(r"^# /// script\n((?:# .*\n)+)# ///$", script.read_text(encoding="utf-8"), re.MULTILINE)
    if header is None:
        raise SystemExit(f"{script.name} has no header with its packages.")
    listed: list[str] = tomllib.loads(header[1].replace("# ", ""))["dependencies"]
    return listed


def run(script: Path) -> bool:
    """Run one finding; False where it failed or its behaviour has changed."""
    print(f"\n{script.stem}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "env" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", Path(folder) / "env"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *dependencies(script)], check=True)
        return subprocess.run([python, "-I", script], cwd=folder).returncode == 0


def main(names: list[str]) -> int:
    scripts = [FOLDER / f"{name}.py" for name in names] or [p for p in sorted(FOLDER.glob("*.py")) if p.stem != "run"]
    results = [run(script) for script in scripts]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
