"""``python -m reproduction check|run|document|small|full [--workspace DIR] [--data DIR] [--hours N] [--out DIR]``.

``check`` compares the criteria of ``data/plans/claims.yaml`` with the plans that they name. ``run`` runs the studies,
keeps their scores beside the document and writes it; ``document`` writes it from the kept scores alone.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from cdp.base.errors import CdpError
from cdp.base.workspace import REPOSITORY, Workspace
from reproduction import criteria, document, full, kept, prepare, prior, stages

DATA = REPOSITORY.parent / "shared" / "data"
BUILD = REPOSITORY / "build"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument("form", choices=("check", "run", "document", "small", "full"))
    parser.add_argument("--workspace", type=Path, help="where studies are run; build/reproduction if left out")
    parser.add_argument("--data", type=Path, default=DATA, help="the benchmark data, a folder for each set")
    parser.add_argument("--hours", type=float, default=24.0, help="stop after so long; a second call goes on")
    parser.add_argument("--out", type=Path, help="where the document goes; docs, for small the workspace")
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
        out = a.out or (folder if small else REPOSITORY / "docs")
        chosen = stages.SMALL if small else stages.STAGES
        whole = True

        if a.form != "document":
            workspace = Workspace(folder.resolve())
            there = prepare.small(workspace) if small else prepare.everything(workspace, a.data)
            print(there.text, flush=True)
            whole = stages.run(workspace, chosen, there.missing, hours=a.hours)
            for stage in chosen:
                if file := kept.keep(workspace, stage, out / document.FOLDER):
                    print(f"kept: {file}, {file.stat().st_size / 1e6:.2f} MB")

        studies = kept.read(out / document.FOLDER, chosen)
        print(f"written: {document.write(studies, chosen, out, small=small)}, from {len(studies)} kept studies")

        if out == REPOSITORY / "docs":
            print(f"written: {prior.write([study.report for study in studies.values()])}")

        return 0 if whole else 3
    except CdpError as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    # As Ctrl-C, which a run in the background ignores: the study at work is stopped, and goes on with the next call.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    raise SystemExit(main())
