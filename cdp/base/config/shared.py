"""Settings that several kinds of job have in common."""

from __future__ import annotations

from typing import Any

from cdp.base.settings import option

AT_ONCE = "It works at once, without an account, a key or a GPU."
"""Why the template generator is the default, everywhere."""

CONCURRENCY = option(
    8,
    "Requests under way at once, at each address of the endpoint.",
    reason="Keeps an endpoint busy without running into the rate limits of a small account.",
    unit="requests",
    minimum=1,
    maximum=256,
    advanced=True,
)

PAIRS_AT_ONCE = option(
    128,
    "Pairs scored at once.",
    reason="Pairs of queries are short: so many fit on any machine.",
    unit="pairs",
    minimum=1,
    maximum=4096,
    advanced=True,
)

GPU_IDS = option("", "These GPUs and no others: their UUIDs, separated by commas, as doctor names them.", advanced=True)


def seed_of(what: str, *, advanced: bool = True) -> Any:
    """The seed of what is drawn at random."""
    reason = "Any number does; a fixed one makes the run repeatable."
    return option(0, f"Seed of {what}.", reason=reason, minimum=0, advanced=advanced)
