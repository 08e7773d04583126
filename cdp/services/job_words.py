"""Words on jobs for pages and terminals: kinds, states, failures, live figures, progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdp.base.registry import registry
from cdp.base.text import counted, duration, time_left
from cdp.jobs import JobView

# The kinds of failure.
FAILURES = {
    "cuda_out_of_memory": "out of GPU memory",
    "host_out_of_memory": "out of memory",
    "killed": "killed from outside",
    "disk": "disk",
    "data": "data",
    "configuration": "configuration",
    "network": "network",
    "cluster": "cluster",
    "bug": "fault in the program",
}

# The measures of a training in `metrics.jsonl`: name and format.
FIGURES: dict[str, tuple[str, str]] = {
    "loss": ("loss", "{:.4f}"),
    "learning_rate": ("learning rate", "{:.2e}"),
    "gradient_norm": ("gradient norm", "{:.3f}"),
    "ndcg_at_10": ("dev NDCG@10", "{:.2f}%"),
    "pairs_per_second": ("pairs per second", "{:,.0f}"),
    "memory_mib": ("host memory", "{:,.0f} MiB"),
    "gpu_memory_mib": ("GPU memory", "{:,.0f} MiB"),
}


def kind(name: str) -> str:
    """Return the activity of a kind of job: ``Writing queries``; of an unknown kind its name."""
    declared = registry("job kind").get(name)
    return str(declared.title) if declared is not None else name.replace("-", " ").capitalize()


def where(view: JobView) -> str:
    """Return ``on <cluster>``, "" for this machine."""
    return f"on {view.cluster}" if view.cluster else ""


def doing(view: JobView) -> str:
    """Return a job's progress: ``training · 320 of 1,200 steps · 27% · about 2 min left``."""
    state = str(view.state)
    if state == "queued":
        return " · ".join(part for part in ("queued", f"place {view.position}" if view.position else "") if part)
    if not view.active:
        return state
    phase = view.phase if state == "running" and view.phase else state
    done = f"{view.done:,} of {view.total:,} {view.unit}".strip() if view.total else ""
    if view.unit == "%":  # of several stages: the one that is at work says how far it is
        done = view.message
    share = f"{view.fraction:.0%}" if view.total else ""
    named = "" if done and phase == view.unit else phase  # a study's phase and unit are both conditions
    return " · ".join(part for part in (named, done, share, time_left(view.eta_s)) if part)


def sentence(view: JobView) -> str:
    """Return what a job's state means, in one or two sentences."""
    state = str(view.state)
    after = "" if view.seconds is None else f" after {duration(view.seconds)}"
    model_note = " Its model is kept." if view.has_model else ""
    if state == "queued":
        ahead = (view.position or 1) - 1
        turn = "It is next in the queue." if ahead == 0 else f"It waits for its turn; {ahead} before it in the queue."
        return view.message or turn
    if state == "running":
        runs = f"It runs in the background{_failed(view)} and continues when this window is closed."
        return f"{runs} {warning(view)}".strip()
    if view.inputs.get("recorded"):
        return "Recorded: it ran on another machine and came with the demo. Run the test on Decide to repeat it here."
    if state == "finished":
        return f"Finished{after}{_failed(view)}.{model_note}"
    if state == "stopped":
        again = "" if "Resume" in view.message else " Resume it to go on."
        return f"{view.message or 'It was stopped.'}{model_note}{again}"
    if state == "failed":
        kind = FAILURES.get((view.failure or {}).get("kind", ""), "")
        return f"It failed{after}{f': {kind}' if kind else ''}.{model_note}"
    return view.message


def warning(view: JobView) -> str:
    """Return what a model's answers so far warn of, before more is paid; empty for other jobs."""
    return view.message if view.active and view.phase in ("generating", "judging") else ""


def _failed(view: JobView) -> str:
    if not view.n_failures:
        return ""
    return f"; {counted(view.n_failures, 'item')} failed on the way and are listed"


def failure(view: JobView) -> tuple[str, str, list[str]]:
    """Return (message, hint, last lines of the log) of a failed job; empty for any other."""
    failure_record = view.failure
    if not failure_record:
        return "", "", []
    message = str(failure_record.get("message") or "The job failed.")
    return message, str(failure_record.get("hint") or "The log holds more."), failure_record["log_tail"]


def figures(latest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the newest value of each measure of a training, as (name, value with its unit)."""
    # A study logs the score of each training as it ends, and no dev score while it trains.
    of_study = {"ndcg_at_10": ("NDCG@10 of the last training", "{:.2f}%")} if "condition" in latest else {}
    return [
        (name, form.format(latest[key]))
        for key, (name, form) in {**FIGURES, **of_study}.items()
        if isinstance(latest.get(key), (int, float))
    ]


def outcome(results: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the single numbers and texts among a job's results, as (name, value)."""
    return [
        (name, f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value))
        for name, value in results.items()
        if isinstance(value, (int, float, str)) and value != ""
    ]


def rate(view: JobView) -> str:
    """Return the throughput of the present phase, ``12.5 documents per second``; empty if unknown."""
    return f"{view.rate:,.1f} {view.unit} per second" if view.active and view.rate and view.unit else ""
