"""Damaged inputs, one after the other, in a process with limits: ``python -m tests.fuzz.attack TARGET N SEED FOLDER``.

Writes ``report.json`` to FOLDER: how many inputs ended in a result and in a CdpError, and each other end with its seed
and traceback. Of several targets, with commas between them, it writes one to FOLDER/TARGET. An input may take 10 s of
CPU and 1 GB above what the process began with, and may change nothing but what it makes.
``python -m tests.fuzz.attack TARGET 1 SEED FOLDER`` does one input again.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

CPU_S = 10.0
MEMORY = 1 << 30
KEPT = 200


class TooSlowError(BaseException):
    """Ten seconds of CPU are over; no handler of ours or of a library may swallow it."""


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlowError


def limit_memory() -> None:
    """From now on this process may hold 1 GB more than it does."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    held = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData"))
    limit = held * 1024 + MEMORY
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def tree(root: Path) -> dict[str, str]:
    """Every file and folder below ``root`` with a hash of its content; locks, which stay where they were, left out."""
    found: dict[str, str] = {}
    for path in sorted(path for path in root.rglob("*") if path.suffix != ".lock"):
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[path.relative_to(root).as_posix()] = digest
    return found


def main(name: str, n: int, seed: int, root: Path) -> dict[str, Any]:
    """Attack one target ``n`` times."""
    os.environ["TMPDIR"] = str(root / "tmp")
    tempfile.tempdir = None
    from cdp.base.errors import CdpError
    from cdp.base.workspace import Workspace
    from cdp.corpus import read_documents, store
    from tests.fuzz import files
    from tests.fuzz.small_files import SMALL
    from tests.fuzz.targets import TARGETS, Target

    warnings.simplefilter("ignore")
    shutil.rmtree(root, ignore_errors=True)
    (root / "tmp").mkdir(parents=True)
    (root / "others").mkdir()
    (root / "others" / "file.txt").write_text("not to be touched", encoding="utf-8")
    workspace = Workspace(root / "workspace")
    for folder in (workspace.corpora, workspace.queries, workspace.benchmarks / ".info"):
        folder.mkdir(parents=True)
    (workspace.benchmarks / ".downloads").mkdir()
    documents = root / "fuzzed-corpus.jsonl"
    documents.write_bytes(files.jsonl(files.ROWS))
    with read_documents(documents) as result:
        manifest = store(result, "fuzzed corpus", workspace)
    kept = workspace.corpora / "fuzzed-corpus"
    workspace.corpus(manifest.id).rename(kept)
    stored = json.loads((kept / "manifest.json").read_text(encoding="utf-8"))
    (kept / "manifest.json").write_text(json.dumps({**stored, "id": "fuzzed-corpus"}), encoding="utf-8")

    target = TARGETS[name] if name in TARGETS else Target(SMALL[name])
    ends: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    slowest = (0.0, 0)
    signal.signal(signal.SIGPROF, _too_slow)
    gc.collect()
    before = tree(root)
    limit_memory()
    case = root / "case"
    for number in range(seed, seed + n):
        case.mkdir()
        began = time.process_time()
        end, trace = "result", ""
        try:
            signal.setitimer(signal.ITIMER_PROF, CPU_S)
            target.attempt(case, workspace, random.Random(number))
        except CdpError as error:
            end = "CdpError"
            if not str(error).isprintable() and any(ord(c) < 32 and c != "\n" for c in str(error)):
                ends["CdpError with control characters"] += 1
            try:
                str(error).encode("utf-8")
            except UnicodeEncodeError:
                end, trace = "message not printable", repr(str(error))
        except (Exception, TooSlowError) as error:
            end, trace = type(error).__name__, traceback.format_exc()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        took = time.process_time() - began
        slowest = max(slowest, (took, number))
        shutil.rmtree(case, ignore_errors=True)
        after = tree(root)
        if end == "result":
            made = [path for path in after if path not in before]
            if any(target.makes not in path for path in made) or any(after.get(p) != before[p] for p in before):
                end, trace = "other files changed", f"{sorted(set(after.items()) ^ set(before.items()))}"
        elif end == "CdpError" and after != before:
            end, trace = "leftovers", f"{sorted(set(after.items()) ^ set(before.items()))}"
        ends[end] += 1
        if end not in ("result", "CdpError") and len(wrong) < KEPT:
            wrong.append({"seed": number, "end": end, "trace": trace[-3000:]})
        for path in sorted((root / p for p in after if p not in before), reverse=True):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    report = {"target": name, "n": n, "ends": dict(ends), "slowest": slowest, "wrong": wrong}
    (root / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    return report


if __name__ == "__main__":
    names, top = sys.argv[1].split(","), Path(sys.argv[4])
    for one in names:
        found = main(one, int(sys.argv[2]), int(sys.argv[3]), top / one if len(names) > 1 else top)
        ends_of_wrong = [w["trace"].strip().splitlines()[-1:] for w in found["wrong"][:20]]
        print(json.dumps({**found, "wrong": ends_of_wrong}, indent=1))
