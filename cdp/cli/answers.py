"""Answers of commands: text, tables or ``--json``, at once or with ``--wait``; progress line, Ctrl-C, input, output."""

from __future__ import annotations

import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError
from cdp.base.text import cut, interval, size, words_of
from cdp.base.workspace import Workspace
from cdp.cli.overview import DONE, exit_code
from cdp.retrievers.sending import Sending
from cdp.services import completeness, jobs
from cdp.services.projects import Members

LONGEST_CELL = 60


def plain(value: Any, **more: Any) -> Any:
    """Return ``value`` for JSON: dataclasses as mappings, enums and paths as text, NumPy values as Python's.

    ``more`` are further entries of a mapping.
    """
    from pydantic_core import to_jsonable_python

    made = to_jsonable_python(value, fallback=lambda v: v.tolist() if hasattr(v, "tolist") else str(v))
    if more:
        return {**made, **plain(more)}
    return made


def picked(record: object, names: Sequence[str]) -> dict[str, Any]:
    """Return these fields of a record."""
    return {name: getattr(record, name) for name in names}


def shown(answer: Any, columns: Sequence[str] = (), empty: str = "") -> str:
    """Return an answer as text: rows as a table of these columns, a mapping as ``name: value`` lines.

    Entries without a value are left out; each text of a list has a line of its own.
    """
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Sequence):
        return table(answer, columns, empty)

    lines = []
    for name, value in plain(answer).items():
        for item in _items(value):
            text = item if isinstance(item, str) else value_cell(item, 4)
            space = "" if text.startswith("\n") else " "
            lines.append(f"{words_of(name)}:{space}{text}")

    return "\n".join(lines)


def _items(value: Any) -> Sequence[Any]:
    """Return what stands on lines of its own: each text of a list, else the value, nothing of what is empty."""
    if value in (None, "", [], {}):
        return ()
    if isinstance(value, list) and any(isinstance(item, str) and " " in item for item in value):
        return value
    return (value,)


def value_cell(value: Any, digits: int = 2, *, whole: bool = False) -> str:
    """Return one value as it stands in a table; texts are cut unless ``whole``."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {value_cell(v, digits)}" for name, v in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(value_cell(v, digits) for v in value)

    text = " ".join(str(value).split())
    return text if whole else cut(text, LONGEST_CELL)


def table(rows: Sequence[Any], columns: Sequence[str] = (), empty: str = "", *, digits: int = 2) -> str:
    """Return rows (mappings or records) as aligned columns, by default all; ``empty`` where there are no rows."""
    if not rows:
        return empty

    drawn = [_column(rows, name, digits) for name in columns or list(rows[0])]
    return "\n".join("  ".join(line).rstrip() for line in zip(*drawn, strict=True))


def _column(rows: Sequence[Any], name: str, digits: int) -> list[str]:
    """Return a column's heading, line and cells, all of one width; numbers stand at the right."""
    read = itemgetter(name) if isinstance(rows[0], Mapping) else attrgetter(name)
    values = list(map(read, rows))
    cells = [words_of(name), *(value_cell(value, digits, whole=name == "id") for value in values)]

    width = max(map(len, cells))
    cells.insert(1, "-" * width)
    if all(isinstance(value, int | float | None) for value in values):
        return [cell.rjust(width) for cell in cells]
    return [cell.ljust(width) for cell in cells]


def first_of(n: int, lines: Sequence[str]) -> str:
    """Return ``n``, and below it the first of so many lines with the number of the rest; empty for none."""
    if not n:
        return ""

    told = [f"{n:,}", *lines]
    if n > len(lines):
        told.append(f"and {n - len(lines):,} more")
    return "\n  ".join(told)


def failed(summary: Any) -> str:
    """Return the items that failed in a job that went on: how many, the first of them, and the files with all."""
    lines = [f"{line.get('id') or line.get('document_id')}: {line.get('reason')}" for line in summary.first]
    named = [f"\n  texts and tracebacks: {path}" for path in summary.files]
    return first_of(summary.n, lines) + "".join(named)


def measures(values: Sequence[Mapping[str, Any]]) -> str:
    """Return Q-D metrics with their intervals and the models that they were measured with."""
    from cdp.metrics.measures import MEASURES

    rows = [
        {
            "measure": MEASURES[value["name"]].title,
            "value": value["value"],
            "95% interval": interval(value["interval"], 3),
            "documents": value["n_documents"],
            "measured with": value["model"],
        }
        for value in values
    ]
    return table(rows, empty="no measures", digits=3)


def job(view: Any) -> str:
    """Return one job: its state, progress, and its failure with the end of the log."""
    activity = jobs.activity(view.kind).lower()
    if view.attempt > 1:
        activity += f", attempt {view.attempt}"

    lines = [f"{view.id}: {view.state} ({activity})", jobs.sentence(view)]
    if view.active and view.total:
        lines.append(jobs.doing(view))

    lines.append(" · ".join(filter(None, (*jobs.where(view), jobs.rate(view)))))
    message, hint, tail = jobs.failure(view)
    lines += [message, hint, *(f"  | {line}" for line in tail[-10:])]
    if view.size is not None:
        lines.append(f"{size(view.size)} in {view.folder}")

    return "\n".join(filter(None, lines))


def ended(workspace: Workspace, view: Any, outcome: Mapping[str, Any]) -> str:
    """Return how a job ended, and its results."""
    lines = [job(view), *(f"  {words_of(name)}: {value}" for name, value in jobs.in_words(workspace, outcome))]
    lines += [f"  note: {note}" for note in outcome.get("notes", ())]
    if "measures" in outcome:
        lines += ["", measures(outcome["measures"])]
    return "\n".join(lines)


def progress_line(view: Any, latest: Mapping[str, Any] | None = None) -> str:
    """Return a job's progress as the page words it: how far, how long still, and a training's newest figures."""
    if str(view.state) == "queued":
        return f"{jobs.doing(view)} · {jobs.sentence(view)}"

    figures = [*map(" ".join, jobs.figures(latest or {}))] or [jobs.rate(view)]
    return " · ".join(filter(None, (jobs.doing(view), *figures, jobs.warning(view))))


class ProgressLine:
    """Shows each view of a job on stderr: one changing line on a terminal, a line every ten seconds elsewhere.

    ``latest`` gives the newest values of the job's live metrics.
    """

    EVERY_S = 10.0

    def __init__(self, latest: Callable[[], Mapping[str, Any]] = dict) -> None:
        self.latest = latest
        self.phase = ""
        self.said = -math.inf

    def __call__(self, view: Any) -> None:
        phase = f"{view.state} {view.phase} {view.position}"
        terminal = sys.stderr.isatty()
        if not terminal and phase == self.phase and time.monotonic() - self.said < self.EVERY_S:
            return

        self.phase, self.said = phase, time.monotonic()
        text = progress_line(view, self.latest() if view.active else None)
        if terminal:
            changing_line(text, "" if view.active else "\n")
        else:
            print(text, file=sys.stderr, flush=True)


def changing_line(text: str, end: str = "") -> None:
    """Replace the last line of the terminal."""
    width = max(20, shutil.get_terminal_size().columns - 1)
    print(f"\r\x1b[2K{text[:width]}", end=end, file=sys.stderr, flush=True)


def reading(file: str, done: int, total: int) -> None:
    """Show on a terminal how much of the documents is read, and which file."""
    if sys.stderr.isatty():
        changing_line(f"{done / total:.0%} · {file}")


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
        """Print the answer, as JSON if asked for, else as text (``shown`` of the view); return exit code 0."""
        if self.json:
            answer = json.dumps(value, ensure_ascii=False, default=plain, indent=2)
        elif view is None:
            answer = shown(value, columns, empty)
        else:
            answer = shown(view, columns, empty)

        # A file's name may hold bytes that are no text: they are shown as escapes, which JSON reads too.
        printable = answer.encode("utf-8", "backslashreplace").decode("utf-8")
        print(printable, file=sys.stderr if self.piped else sys.stdout)
        return DONE

    def started(self, job_id: str, *also: str) -> int:
        """Say which jobs were started; with ``--wait`` follow them to their ends. The answer is about the first."""
        if not (self.wait or self.read_input):
            job = jobs.show(self.workspace, job_id, with_size=False)
            self.say({"id": job.id, "state": str(job.state)}, f"{job.id}: {job.state} (follow it: jobs wait {job.id})")
            note_queued(also)
            return DONE

        job = self._followed([job_id, *also])
        outcome = jobs.outcome(self.workspace, job.id)
        failed = jobs.failed(self.workspace, job.id)

        # Studies and downloads have a "failed" of their own (trainings, benchmarks): theirs is the command's subject.
        value = {"id": job.id, "state": str(job.state), "failed": failed, **outcome}
        self.say(value, ended(self.workspace, job, outcome))
        warn(failed.warning)
        return max(exit_code(job.state == "finished"), self.followed(also))

    def followed(self, job_ids: Sequence[str]) -> int:
        """Follow jobs to their ends, say on stderr how each ended, and return 1 if one did not finish."""
        code = DONE
        for i, job_id in enumerate(job_ids):
            job = self._followed(job_ids[i:])
            note(ended(self.workspace, job, jobs.outcome(self.workspace, job_id)))
            warn(jobs.failed(self.workspace, job_id).warning)
            code = max(code, exit_code(job.state == "finished"))

        return code

    def _followed(self, job_ids: Sequence[str]) -> Any:
        """Follow the first of these jobs. Detached where Ctrl-C is pressed."""
        first = job_ids[0]
        try:
            return jobs.wait(self.workspace, first, ProgressLine(lambda: jobs.latest(self.workspace, first)))
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
        files = list(filter(Path.is_file, path.rglob("*"))) if path.is_dir() else [path]
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


def note_queued(job_ids: Iterable[str]) -> None:
    """Say on stderr which other jobs were queued."""
    note(*(f"also queued: {job_id}" for job_id in job_ids))


def note_sent(sent: Iterable[Sending]) -> None:
    """Say on stderr what is sent to other machines."""
    note(*(each.sentence for each in sent))


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
