"""The measure that the soak rests on tells a leak from noise."""

from __future__ import annotations

import random

import pytest

from tests.soak.watch import Sample, slope, trends


def samples(leak_per_s: float, *, n: int = 120) -> list[Sample]:
    rng = random.Random(0)
    return [
        Sample(5.0 * i, int(300e6 + 30e6 * rng.random() + (100e6 if i % 17 == 0 else 0) + leak_per_s * 5 * i),
               50 + rng.randrange(5), 20, 0, 0)
        for i in range(n)
    ]  # fmt: skip


@pytest.mark.parametrize(("leak_per_s", "flat"), [(0.0, True), (20e3, True), (400e3, False)])
def test_a_leak_is_told_from_bursts(leak_per_s: float, flat: bool) -> None:
    memory = trends(samples(leak_per_s))[0]
    assert memory.flat == flat, memory


def test_the_slope_of_a_line_is_its_slope() -> None:
    assert slope([0.0, 1.0, 2.0, 5.0], [1.0, 3.0, 5.0, 11.0]) == 2.0
