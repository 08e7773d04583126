"""How fast things go: rates, what they rest on, and what follows when work is divided by one.

A rate without a basis is not used: a stage whose rate nobody knows has no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import inf
from statistics import median
from typing import Any

from cdp.base.errors import ConfigError


class Basis(StrEnum):
    """What a rate rests on."""

    HERE = "measured here"
    CLUSTER = "measured on your cluster"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Observation:
    """Work that was done and timed: ``amount`` in some unit, ``characters`` the mean length of its texts (None where
    nobody knows)."""

    amount: float
    seconds: float
    characters: float | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """Units of work per second of one worker: a processor, a machine, a GPU, an endpoint.

    ``low`` and ``high`` are the slowest and fastest measurement, None where there was one alone. ``largest`` is the
    most work that one measurement covered (0: unknown), ``characters`` the mean length of its texts, ``cpus`` the
    processors of the machine (0: unknown). ``source`` says in words where it comes from.
    """

    value: float
    unit: str
    basis: Basis
    source: str
    low: float | None = None
    high: float | None = None
    largest: float = 0.0
    measurements: int = 1
    characters: float | None = None
    cpus: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


SLOWEST, FASTEST = 1e-9, 1e18
"""Units per second that a user may name: one in thirty years, and what no machine does. No time is infinite between."""

COMPARABLE = 0.1
"""A measurement over less than this share of the largest one is mostly warming up, and is left out."""


def rate_of(observations: Iterable[Observation], unit: str, basis: Basis, source: str, *, cpus: int = 0) -> Rate | None:
    """The median of what was observed, with its spread; None where nothing was."""
    usable = [o for o in observations if 0 < o.amount < inf and 0 < o.seconds < inf]
    if not usable:
        return None
    largest = max(o.amount for o in usable)
    usable = [o for o in usable if o.amount >= COMPARABLE * largest]
    speeds = [o.amount / o.seconds for o in usable]
    lengths = [o.characters for o in usable if o.characters]
    several = len(speeds) > 1
    return Rate(
        median(speeds),
        unit,
        basis,
        source,
        min(speeds) if several else None,
        max(speeds) if several else None,
        largest,
        len(speeds),
        median(lengths) if lengths else None,
        cpus,
    )


def read_user_rates(texts: Sequence[str], units: Mapping[str, str]) -> dict[str, Rate]:
    """Rates that a user has measured elsewhere, as ``encoding=1200`` or ``encoding=1000..1400``: by stage.

    ConfigError for a stage that is not known or a number that is no rate.
    """
    rates = {}
    for text in texts:
        stage, _, value = text.partition("=")
        if stage not in units:
            raise ConfigError(f"No stage is called {stage[:40]!r}.", hint=f"Those are {', '.join(units)}.")
        try:
            low, high = (float(part) for part in (value.split("..") if ".." in value else (value, value)))
        except ValueError:
            low = high = 0.0
        if not SLOWEST <= low <= high <= FASTEST:
            raise ConfigError(
                f"{stage}: {value[:40]!r} is no rate.", hint=f"Write {units[stage]} per second: 1200, or 1000..1400."
            )
        spread = (low, high) if low < high else (None, None)
        rates[stage] = Rate((low + high) / 2, units[stage], Basis.CLUSTER, "as you told", *spread)
    return rates


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds: what is expected, and between the fastest and the slowest measurement (None without a spread)."""

    seconds: float
    low: float | None = None
    high: float | None = None

    def plus(self, other: Span) -> Span:
        """Both one after the other. Of a part without a spread its seconds are taken for both ends."""
        if self.low is None and other.low is None and self.high is None and other.high is None:
            return Span(self.seconds + other.seconds)
        low = (self.seconds if self.low is None else self.low) + (other.seconds if other.low is None else other.low)
        high = (self.seconds if self.high is None else self.high) + (
            other.seconds if other.high is None else other.high
        )
        return Span(self.seconds + other.seconds, low, high)


def span(amount: float, rate: Rate, workers: float = 1.0) -> Span:
    """How long ``amount`` of work takes on so many workers, each at that rate, if it divides without loss."""
    share = amount / max(workers, 1.0)
    if rate.low is None or rate.high is None:
        return Span(share / rate.value)
    return Span(share / rate.value, share / rate.high, share / rate.low)


def training_seconds(pairs_seen: float, pairs_per_second: float, *, start: float = 0.0, tokenise: float = 0.0) -> float:
    """Seconds from start to model: starting and loading, tokenising, then every pair of every epoch."""
    return start + tokenise + pairs_seen / pairs_per_second


def encoding_seconds(texts: float, texts_per_second: float) -> float:
    """Seconds to encode texts (and, in studies, to search them: their rate is of both)."""
    return texts / texts_per_second
