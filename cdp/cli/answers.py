"""How every command answers: as text or JSON, at once or by following the job that it started."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, TypeVar

from cdp.base.errors import ConfigError
from cdp.base.settings import Config
from cdp.base.workspace import Workspace
from cdp.cli import display

C = TypeVar("C", bound=Config)

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def say(arguments: argparse.Namespace, value: Any, text: str) -> int:
    """Print the answer: as JSON if asked for, else as text."""
    answer = json.dumps(value, ensure_ascii=False, default=display.plain, indent=2) if arguments.json else text
    # A file's name may hold bytes that are no text: they are shown as escapes, which JSON reads too.
    print(answer.encode("utf-8", "backslashreplace").decode("utf-8"))
    return DONE


def started(workspace: Workspace, a: argparse.Namespace, job_id: str) -> int:
    """Say what was started; with ``--wait`` follow it to its end. Ctrl-C leaves the job running and says so."""
    from cdp.cli import display_jobs
    from cdp.services import jobs

    if not a.wait:
        job = jobs.show(workspace, job_id, with_size=False)
        return say(a, {"id": job.id, "state": str(job.state)}, f"{job.id}: {job.state} (follow it: jobs show {job.id})")
    try:
        job = jobs.wait(workspace, job_id, display_jobs.Progress(lambda: jobs.latest(workspace, job_id)))
    except KeyboardInterrupt:
        note(f"\n{job_id} goes on in the background. Follow it: jobs wait {job_id} · end it: jobs stop {job_id}")
        if a.json:
            job = jobs.show(workspace, job_id, with_size=False)
            say(a, {"id": job.id, "state": str(job.state)}, "")
        return DONE
    outcome = jobs.outcome(workspace, job.id)
    failed = jobs.failed(workspace, job.id)
    # Studies and downloads have a "failed" of their own (trainings, benchmarks): theirs is what the command is about.
    say(
        a,
        {"id": job.id, "state": str(job.state), "failed": failed.summary, **outcome},
        display_jobs.ended(job, outcome),
    )
    warn(failed.warning)
    return DONE if job.state == "finished" else FAILED


def note(text: str) -> None:
    """A line on stderr: what goes on beside the answer, which has stdout to itself."""
    print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """A warning on stderr; nothing for an empty text."""
    if text:
        note(f"warning: {text}")


def warn_incomplete(workspace: Workspace, *query_sets: str) -> None:
    """What each of these query sets (by id or name, empty ones skipped) lacks that is not whole."""
    from cdp.services import completeness

    for item in completeness.list_incomplete(workspace, query_sets):
        warn(item.note)


def followed(workspace: Workspace, job_id: str) -> int:
    """Follow a further job of the same command to its end, telling on stderr how it ended."""
    from cdp.cli import display_jobs
    from cdp.services import jobs

    try:
        job = jobs.wait(workspace, job_id, display_jobs.Progress(lambda: jobs.latest(workspace, job_id)))
    except KeyboardInterrupt:
        note(f"\n{job_id} goes on in the background: jobs show {job_id}")
        return DONE
    note(display_jobs.ended(job, jobs.outcome(workspace, job.id)))
    warn(jobs.failed(workspace, job.id).warning)
    return DONE if job.state == "finished" else FAILED


def in_one_line(text: str) -> str:
    """A message as one line of visible characters: names in it may hold line breaks, escapes for a terminal, or bytes
    that are no text."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)


def settings(a: argparse.Namespace) -> dict[str, str]:
    """The ``--set field=value`` options; ConfigError for one without ``=``."""
    values: dict[str, str] = {}
    for pair in a.set:
        name, separator, value = pair.partition("=")
        if not separator:
            raise ConfigError(f"--set {pair} has no value.", hint="Write --set field=value.")
        values[name.strip()] = value
    return values


def config_of(config: type[C], a: argparse.Namespace, *names: str, **more: Any) -> C:
    """A configuration from the options of these names, further values, and ``--set``, which also says what an option
    says that was left out. ConfigError where the two contradict each other."""
    given = settings(a)
    for name in given.keys() & set(names):
        typed = getattr(a, name)
        if typed not in ("", None, given[name], config.model_fields[name].default) and str(typed) != given[name]:
            raise ConfigError(f"{name} is {typed}, and --set {name}={given[name]} says otherwise.", hint="Say it once.")
    options = {name: getattr(a, name) for name in names if name not in given}
    return config.from_dict({**given, **options, **more})
