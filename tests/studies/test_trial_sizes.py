"""The study that the test on one's own data is, and the splits that it chooses and reports by."""

from __future__ import annotations

import pytest

from cdp.base.errors import ConfigError
from cdp.studies.config import TrialConfig, reported_split
from cdp.studies.own_test import study_of_test
from cdp.studies.planning import Splits


def test_the_study_of_a_test_holds_documents_and_pairs_equal_beside_bm25() -> None:
    config = TrialConfig.from_dict({"corpus": "c", "generator": "openai", "model": "m", "per_doc": 4})
    study = study_of_test(config, Splits("b", 1, 1, 1), 300, "asked", "mine")
    assert (study.held_equal, study.bm25, study.methods, study.max_documents) == (
        "documents and pairs", True, ("diverse", "paraphrase"), 300,
    )  # fmt: skip
    assert (study.endpoint.model, study.query_sets, study.per_doc) == ("m", ("asked",), (1, 4))
    assert (study.benchmarks, study.dev) == (("b:test",), ("b:dev",))


def test_test_is_reported_where_it_is_there() -> None:
    assert [reported_split(splits) for splits in (("dev", "test"), ("train", "validation"), ("train",))] == [
        "test", "validation", "train",
    ]  # fmt: skip


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError):
        TrialConfig.from_dict({"corpus": "c", "minutes": 0})
