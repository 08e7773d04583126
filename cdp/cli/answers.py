"""Answers of commands: text or ``--json``, at once or with ``--wait``; Ctrl-C, standard input and output, warnings."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.overview import DONE, FAILED
from cdp.services import completeness, jobs
from cdp.services.projects import Members

STANDARD = "-"


class Detached(KeyboardInterrupt):
    """Ctrl-C while jobs were followed: they go on. The message says how to follow and how to stop them."""


class Run:
    """One call of a command: the workspace, the common options, and the ways to answer."""

    def __init__(self, workspace: Workspace, given: Mapping[str, Any]) -> None:
        self.workspace, self.given = workspace, given
        self.json = bool(given.get("json"))
        self.wait = bool(given.get("wait"))
        self.project = str(given.get("project", ""))
        self.scope: Members
        self.ends = ExitStack()
        self.read_input = False  # then jobs are followed: their file ends with this process
        self.piped = False  # then data has standard output to itself, and the answer goes to stderr

    def say(self, value: Any, view: Any = None, columns: Sequence[str] = (), empty: str = "") -> int:
        """Print the answer, as JSON if asked for, else as text (``display.shown`` of the view); return exit code 0."""
        if self.json:
            answer = json.dumps(value, ensure_ascii=False, default=display.plain, indent=2)
        else:
            answer = display.shown(value if view is None else view, columns, empty)
        # A file's name may hold bytes that are no text: they are shown as escapes, which JSON reads too.
        shown = answer.encode("utf-8", "backslashreplace").decode("utf-8")
        print(shown, file=sys.stderr if self.piped else sys.stdout)
        return DONE

    def started(self, job_id: str, *also: str) -> int:
        """Say which jobs were started; with ``--wait`` follow them to their ends. The answer is about the first."""
        if not (self.wait or self.read_input):
            job = jobs.show(self.workspace, job_id, with_size=False)
            self.say({"id": job.id, "state": str(job.state)}, f"{job.id}: {job.state} (follow it: jobs wait {job.id})")
            note(*(f"also queued: {other}" for other in also))
            return DONE
        job = self._followed([job_id, *also])
        outcome = jobs.outcome(self.workspace, job.id)
        failed = jobs.failed(self.workspace, job.id)
        # Studies and downloads have a "failed" of their own (trainings, benchmarks): theirs is the command's subject.
        value = {"id": job.id, "state": str(job.state), "failed": failed, **outcome}
        self.say(value, display.ended(job, outcome))
        warn(failed.warning)
        return max(DONE if job.state == "finished" else FAILED, self.followed(also))

    def followed(self, job_ids: Sequence[str]) -> int:
        """Follow jobs to their ends, say on stderr how each ended, and return 1 if one did not finish."""
        code = DONE
        for i, job_id in enumerate(job_ids):
            job = self._followed(job_ids[i:])
            note(display.ended(job, jobs.outcome(self.workspace, job_id)))
            warn(jobs.failed(self.workspace, job_id).warning)
            code = max(code, DONE if job.state == "finished" else FAILED)
        return code

    def _followed(self, job_ids: Sequence[str]) -> Any:
        """Follow the first of these jobs. Detached where Ctrl-C is pressed."""
        first = job_ids[0]
        try:
            return jobs.wait(self.workspace, first, display.ProgressLine(lambda: jobs.latest(self.workspace, first)))
        except KeyboardInterrupt:
            if self.json:
                job = jobs.show(self.workspace, first, with_size=False)
                self.say({"id": job.id, "state": str(job.state)}, "")
            go_on = "goes on" if len(job_ids) == 1 else "go on"
            raise Detached(
                f"{', '.join(job_ids)} {go_on} in the background. Follow: jobs wait {first} · stop: jobs stop {first}"
            ) from None

    def standard_input(self, suffix: str) -> str:
        """Return the path of a temporary file with what standard input holds; JSON and archives get their suffix."""
        self.read_input = True
        path = self._temporary() / "stdin"
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        with open(path, "rb") as file:
            head = file.read(4)
        starts = {b"{": ".jsonl", b"[": ".json", b"PK": ".zip", b"PAR1": ".parquet"}
        suffix = next((ending for start, ending in starts.items() if head.startswith(start)), suffix)
        return str(path.rename(path.with_suffix(suffix)))

    @contextmanager
    def output(self, target: str, suffix: str = "") -> Iterator[str]:
        """Give the path to write to. For ``-`` it is temporary, and its file is copied to standard output."""
        if target != STANDARD:
            yield target
            return
        self.piped = True
        path = self._temporary() / f"stdout{suffix}"
        yield str(path)
        files = [file for file in sorted(path.rglob("*")) if file.is_file()] if path.is_dir() else [path]
        if len(files) != 1:
            raise ConfigError("This format is a folder of several files.", hint="Name a folder with --out.")
        sys.stdout.flush()
        with open(files[0], "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()

    def deleted(self, id: str, also: str = "") -> int:
        """Say that a thing is removed; return exit code 0."""
        return self.say({"id": id, "deleted": True}, f"{id} is removed{also and f'; {also}'}")

    def _temporary(self) -> Path:
        return Path(self.ends.enter_context(tempfile.TemporaryDirectory(prefix="cdp-")))


def note(*lines: str) -> None:
    """Print lines on stderr, so that the answer has stdout to itself."""
    for text in lines:
        print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Print a warning on stderr; nothing for an empty text."""
    if text:
        note(f"warning: {text}")


def warn_incomplete(workspace: Workspace, *query_sets: str) -> None:
    """Warn of each of these query sets (ids or names, empty ones skipped) that is incomplete."""
    for item in completeness.list_incomplete(workspace, query_sets):
        warn(item.note)


def refuse_unless(condition: Any, message: str, hint: str = "") -> None:
    """Raise ConfigError unless the condition holds."""
    if not condition:
        raise ConfigError(message, hint=hint)


Handler = Callable[..., int]
