"""How long a stage takes: its work divided by a rate, and every reason to doubt the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdp.planning.quantities import long_time, short_count
from cdp.planning.rates import Rate, Span, span
from cdp.planning.workload import CPU, Hardware, Workload

STARTING = "starting"
"""The key of a rate whose unit is starts: 1 / value is how long a job takes to begin."""

NEAR = 0.2
"""Texts whose length differs by less than this share from the measured ones need no remark."""


@dataclass(frozen=True)
class Setting:
    """What every stage is worked out from. ``rates`` are by ``stage/what/device``, or by ``stage`` alone where a user
    told one."""

    work: Workload
    hardware: Hardware
    rates: Mapping[str, Rate]

    def rate(self, *keys: str) -> Rate | None:
        """The first of these that there is."""
        return next((self.rates[key] for key in keys if key in self.rates), None)

    @property
    def start(self) -> float:
        """Seconds until a job is at work; 0 where nobody has measured it."""
        begins = self.rates.get(STARTING)
        return 1 / begins.value if begins else 0.0


@dataclass(frozen=True, slots=True)
class Work:
    """``amount`` of a stage's work, told by ``how`` it came about. ``characters`` is the mean length of its texts where
    the time grows with it, ``job`` whether a job of its own does it."""

    amount: float
    how: str
    characters: float = 0.0
    job: bool = False


@dataclass(frozen=True, slots=True)
class Share:
    """Who divides the work: so many ``workers``, each a ``worker`` (process, processor, machine, GPU). One that is
    ``every_processor`` of a machine is as fast as these are many."""

    workers: int = 1
    worker: str = "process"
    every_processor: bool = False


@dataclass(frozen=True, slots=True)
class Timed:
    """The time, its arithmetic in words, and what has to be said of it."""

    span: Span
    lines: tuple[str, ...]
    doubts: tuple[str, ...]


def timed(s: Setting, work: Work, share: Share, rate: Rate) -> Timed:
    """``work`` at ``rate`` by all who share it, if it divides without loss."""
    amount, doubts = _by_length(work, rate)
    time, more = _by_processors(s.hardware, amount, share, rate)
    doubts += more
    start = s.start if work.job else 0.0
    time = Span(start).plus(time) if start else time
    if share.workers > 1:
        doubts.append(
            f"Divided by {share.workers:,} {share.worker}s without loss: a model, not measured at that width."
        )
    if not rate.largest:
        doubts.append("Up to which size the rate holds is not known.")
    elif amount / share.workers > rate.largest:
        doubts.append(
            f"The rate was never measured beyond {short_count(rate.largest)} {rate.unit}; here each {share.worker} has "
            f"{short_count(amount / share.workers / rate.largest)} times as much."
        )
    if rate.low is None:
        doubts.append("The rate is a single figure, so no interval can be given.")
    spread = "" if rate.low is None or rate.high is None else f" ({_spread(rate.low, rate.high)})"
    divided = f" ÷ {share.workers:,} {share.worker}s" if share.workers > 1 else ""
    begins = f" + {long_time(start)} to start" if start else ""
    line = f"{short_count(amount)} {rate.unit} ÷ {short_count(rate.value)}{spread} per second{divided}{begins}"
    lines = (f"time: {line} = {long_time(time.seconds)}", f"rate: {rate.basis}: {rate.source}")
    return Timed(time, lines, tuple(doubts))


def _spread(low: float, high: float) -> str:
    return f"{short_count(low)} to {short_count(high)}"


def _by_length(work: Work, rate: Rate) -> tuple[float, list[str]]:
    """The work in texts as long as those that the rate was measured on."""
    if not work.characters or not rate.characters:
        return work.amount, []
    times = work.characters / rate.characters
    if abs(times - 1) <= NEAR:
        return work.amount * times, []
    doubt = (
        f"Measured on texts of {rate.characters:,.0f} characters and taken in proportion for {work.characters:,.0f}: a "
        "model."
    )
    return work.amount * times, [doubt]


def _by_processors(hardware: Hardware, amount: float, share: Share, rate: Rate) -> tuple[Span, list[str]]:
    """The time on machines with another number of processors than the rate was measured with."""
    if not (share.every_processor and rate.cpus and hardware.device == CPU) or hardware.cpus == rate.cpus:
        return span(amount, rate, share.workers), []
    factor = hardware.cpus / rate.cpus
    time = span(amount / factor, rate, share.workers)
    doubt = f"Measured with {rate.cpus} processors and taken in proportion for {hardware.cpus}: a model."
    if factor > 1:  # the slow end gains nothing from more of them
        without = span(amount, rate, share.workers)
        time = Span(time.seconds, time.seconds if time.low is None else time.low, without.high or without.seconds)
        doubt += " The slow end of the interval gains nothing from more of them."
    return time, [doubt]
