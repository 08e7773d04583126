"""``python -m reproduction check|run|small|document|full [--workspace DIR] [--data DIR] [--hours N] [--out DIR]``.

``check`` compares the criteria of ``data/plans/claims.yaml`` with the plans that they name.

``document`` takes the studies from the workspace, or, where there is none, from the files kept beside the document.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cdp.base.errors import CdpError, InputError
from cdp.base.workspace import REPOSITORY, Workspace
from reproduction import criteria, document, full, prepare, runs, stages

DATA = REPOSITORY.parent / "shared" / "data"
BUILD = REPOSITORY / "build"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument("form", choices=("check", "run", "small", "document", "full"))
    parser.add_argument("--workspace", type=Path, help="where studies are kept; build/reproduction if left out")
    parser.add_argument("--data", type=Path, default=DATA, help="the benchmark data, a folder for each set")
    parser.add_argument("--hours", type=float, default=24.0, help="stop after so long; a second call goes on")
    parser.add_argument("--out", type=Path, help="where the document goes; docs for run, the workspace for small")
    a = parser.parse_args(words)
    try:
        if a.form == "full":
            print(full.text())
            return 0
        if a.form == "check":
            problems = criteria.check(criteria.read())
            print("\n".join(problems) or "Every criterion can be met by its plans.")
            return 2 if problems else 0
        small = a.form == "small"
        folder = a.workspace or BUILD / ("reproduction-small" if small else "reproduction")
        workspace = Workspace(folder.resolve())
        chosen = stages.SMALL if small else stages.STAGES
        whole = True
        if a.form != "document":
            there = prepare.small(workspace) if small else prepare.everything(workspace, a.data)
            print(there.text, flush=True)
            whole = stages.run(workspace, chosen, there.missing, hours=a.hours)
        out = a.out or (folder if small else REPOSITORY / "docs")
        if a.form == "document" and a.workspace and not workspace.root.is_dir():
            # An empty workspace would overwrite the kept studies with "not run".
            raise InputError(
                f"There is no workspace {workspace.root}.", hint="Leave --workspace out for the kept files."
            )
        if a.form == "document" and not workspace.root.is_dir():
            came, source = runs.of_files(out / document.FOLDER, chosen), out / document.FOLDER
        else:
            came, source = runs.of_workspace(workspace, chosen), workspace.root
        written = document.write(came, chosen, out, small=small)
        print(f"written: {written}, from {source}")
        return 0 if whole else 3
    except CdpError as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
