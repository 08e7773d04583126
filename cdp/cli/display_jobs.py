"""What a terminal shows of jobs: their state, their progress while one waits, how they ended."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from cdp.cli.display import measures, value_cell
from cdp.services.jobs import job_words


def job(view: Any) -> str:
    """One job: its state and what that means, how far it is, and what went wrong with the end of its log."""
    kind = job_words.KINDS.get(view.kind, view.kind)
    attempt = f", attempt {view.attempt}" if view.attempt > 1 else ""
    lines = [f"{view.id}: {view.state} ({kind.lower()}{attempt})", job_words.sentence(view)]
    if view.active and view.total:
        lines.append(job_words.doing(view))
    held = [job_words.rate(view), *(f"{value} of {name}" for name, value in job_words.memory(view))]
    lines.append(" · ".join(part for part in (*view.devices, job_words.where(view), *held) if part))
    message, hint, tail = job_words.failure(view)
    lines += [message, hint, *(f"  | {line}" for line in tail[-10:])]
    if view.size is not None:
        lines.append(f"{job_words.size(view.size)} in {view.folder}")
    return "\n".join(line for line in lines if line)


def ended(view: Any, outcome: Mapping[str, Any]) -> str:
    """How a job ended, and the figures that it was run for."""
    shown = {k: v for k, v in outcome.items() if isinstance(v, (int, float, str)) and v != ""}
    lines = [job(view), *(f"  {name}: {value_cell(value, 4)}" for name, value in shown.items())]
    notes = outcome.get("notes")
    lines += [f"  note: {note}" for note in notes] if isinstance(notes, list) else []
    if isinstance(outcome.get("measures"), list):
        lines += ["", measures(outcome["measures"])]
    return "\n".join(lines)


def bar(fraction: float, width: int = 20) -> str:
    """``█████▌              ``: how much is done, in eighths of a character."""
    eighths = round(8 * width * min(1.0, max(0.0, fraction)))
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width, "·")


def progress_line(view: Any, latest: Mapping[str, Any] | None = None) -> str:
    """A job's progress as the page shows it: the bar, how far, how long still, and a training's newest figures."""
    if str(view.state) == "queued":
        return f"{job_words.doing(view)} · {job_words.sentence(view)}"
    figures = [f"{name} {value}" for name, value in job_words.figures(latest or {})]
    if not figures:
        figures = [job_words.rate(view), *(f"{name} {value}" for name, value in job_words.memory(view))]
    drawn = f"[{bar(view.fraction)}]" if view.active and view.total else ""
    words = " · ".join(part for part in (job_words.doing(view), *figures) if part)
    return f"{drawn} {words}".strip()


class Progress:
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
            width = max(20, shutil.get_terminal_size().columns - 1)
            shown = text if len(text) <= width else f"{text[: width - 1]}…"
            print(f"\r\x1b[2K{shown}", end="" if view.active else "\n", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)
