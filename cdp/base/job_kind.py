"""A kind of job, declared in one file: words, settings, inputs, device, checks before a start, its worker.

    KIND = JobKind(
        "count", "Counting words", "The words of each query of a set.", CountConfig, main,
        inputs={"query_set": QUERY_SET}, makes="figures",
    )

    if __name__ == "__main__":
        run(main)

The module that defines ``main`` is started as ``python -m MODULE JOB_FOLDER`` (see ``cdp.base.worker``): it is the only
one that may run jobs of the kind. Starting, naming, resuming, listing, the form and the command read the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from cdp.base.registry import Registered
from cdp.base.settings import Config
from cdp.base.worker import Job
from cdp.base.workspace import Workspace

# What a setting may name: the settings get its id, the job's inputs its id and hash.
CORPUS, QUERY_SET, BENCHMARK = "corpus", "query set", "benchmark"
# A query set whose job has ended normally.
WHOLE_SET = "whole query set"

# The kinds whose jobs hold a study: its records, its report, maybe the model of its winner.
STUDIES = ("study", "answer")

# What a job makes, beside these: an evaluation, in ``results/evaluation.json``.
RESULT = "result"


@dataclass(frozen=True)
class Device:
    """What a job keeps busy while it runs: a CPU slot, or so many GPUs, at most ``at_most``.

    ``gpus`` None is one GPU, or a CPU slot where there is none. ``light`` jobs keep no device busy. ``pool``: on a
    cluster the worker gives its files to tasks (``Job.pool``), each with this device.
    """

    gpus: int | None = 0
    at_most: int | None = None
    light: bool = False
    pool: bool = False


CPU, LIGHT = Device(), Device(light=True)


def device_for(gpus: int | None) -> str | None:
    """The device to load a model on, by a job's ``gpus``: the CPU for 0, else None, the best one there is."""
    return "cpu" if gpus == 0 else None


@dataclass(frozen=True)
class PreparedJob:
    """A job that was checked: its settings with ids, its name where the kind's does not do, further ``inputs``."""

    config: Config
    name: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)


# (workspace, settings with the ids of their inputs, jobs that end first) -> what is submitted. Raises CdpError.
# What those jobs make is not there yet.
Prepare = Callable[[Workspace, Any, Sequence[str]], PreparedJob]


@dataclass(frozen=True)
class JobKind(Registered):
    """A kind of job. ``title`` is its activity ("Writing queries"), ``help`` what it does, in a sentence."""

    settings: type[Config]
    main: Callable[[Job], None]
    prepare: Prepare | None = None
    _: KW_ONLY
    # What a job leaves, in words; ``results/<name>.json`` has its figures, and ``query_set`` where it is ``QUERY_SET``.
    makes: str
    called: str = ""  # a job's name, with those of its inputs: "Filter {query_set}: {config.text}"; else the title
    inputs: Mapping[str, str] = field(default_factory=dict)  # what the settings that name an input name: ``CORPUS`` …
    device: Callable[[Any], Device] = lambda config: CPU
    launcher: Literal["python", "accelerate"] = "python"
    once: tuple[str, ...] = ()  # an active job with the same values of these settings is not started again
    asks: bool = True  # the worker asks the endpoint that the settings name
    command: str = ""  # words of its own command; a kind without has ``jobs start`` and a form on the Jobs page
    word: str = ""  # the setting that stands among these words
    retries: bool = False  # a further attempt of a finished job asks once more about what failed
    repeats: bool = True  # the command with the job's settings does the same again

    @property
    def module(self) -> str:
        """The module that runs jobs of this kind."""
        return self.main.__module__
