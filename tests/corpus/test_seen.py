"""The memory-lean set of ids agrees with a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdp.corpus.collector import SeenIds
from tests.strategies import examples


@pytest.mark.slow
@examples(30, 1_000)
@given(st.lists(st.lists(st.integers(0, 60).map(str), max_size=30), max_size=12))
def test_first_places_are_those_of_a_dictionary(batches: list[list[str]]) -> None:
    seen = SeenIds()
    first: dict[str, int] = {}
    place = 0
    for ids in batches:
        places = list(range(place, place + len(ids)))
        place += len(ids)
        expected = {}
        for row, (id, at) in enumerate(zip(ids, places, strict=True)):
            if id in first:
                expected[row] = first[id]
            else:
                first[id] = at
        found = seen.add(ids, places, [-p for p in places])
        assert {row: earlier.place for row, earlier in found.items()} == expected
        assert all(earlier.content == -earlier.place for earlier in found.values())
