"""Which benchmark is which dataset of the paper: the registry decides, and parts and subsets are none."""

from __future__ import annotations

import pytest

from cdp.services.complexity import dataset_of


@pytest.mark.parametrize(
    ("benchmark", "dataset", "same"),
    [
        ("scifact", "scifact", True),
        ("bright-biology", "biology", True),
        ("hotpotqa_sample", "hotpotqa", True),
        ("cqadupstack", "cqadupstack", True),
        ("cqadupstack-android", "cqadupstack", False),
        ("scifact-sample-50q-500d", "scifact", False),
        ("nanoscifact", "scifact", False),
        ("fever", "climate-fever", False),
    ],
)
def test_a_name_is_a_dataset_s_or_not(benchmark: str, dataset: str, same: bool) -> None:
    assert (dataset_of(benchmark) == dataset) is same
