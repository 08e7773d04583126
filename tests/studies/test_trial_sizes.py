"""How large the test on one's own data is made: as large as the minutes allow, and never of one seed."""

from __future__ import annotations

import pytest

from cdp.base.errors import ConfigError
from cdp.studies.estimate import Speed
from cdp.studies.trial import SHAPES, Size, TrialConfig, judging_split, seconds_of, sized, study_of

FAST = Speed(2500.0, 3000.0)


def of(minutes: float, *, documents: int = 100_000, texts: int = 2_000) -> Size:
    config = TrialConfig(corpus="any", minutes=minutes)
    return sized(config, documents=documents, texts=texts, speed=FAST, epochs=3)


@pytest.mark.parametrize("minutes", [1.0, 3.0, 10.0, 60.0])
@pytest.mark.parametrize("texts", [100, 5_000, 50_000])
def test_it_takes_as_many_documents_as_the_minutes_allow_and_no_more(minutes: float, texts: int) -> None:
    size = of(minutes, texts=texts)
    config = TrialConfig(corpus="any", minutes=minutes)

    def seconds(documents: int) -> float:
        return seconds_of(config, documents, size.per_doc, size.seeds, texts, FAST, 3, False)

    assert size.seconds == seconds(size.documents)
    assert size.fits == (size.seconds <= 60 * minutes)
    if size.fits:
        assert seconds(size.documents + 1) > 60 * minutes
    assert len(size.seeds.split(",")) >= 2


def test_a_small_corpus_is_taken_whole_and_a_slow_benchmark_makes_the_test_smaller() -> None:
    assert of(3.0, documents=96, texts=136) == Size(96, *SHAPES[0], of(3.0, documents=96, texts=136).seconds, True)
    slow = of(3.0, texts=30_000)
    assert (slow.per_doc, slow.seeds) != SHAPES[0]
    never = of(3.0, texts=1_000_000)
    assert not never.fits
    assert (never.per_doc, never.seeds) == SHAPES[-1]


def test_the_study_of_a_test_holds_documents_and_pairs_equal_beside_bm25() -> None:
    study = study_of(TrialConfig(corpus="c", generator="openai", model="m"), "b:dev", of(3.0), spend=True)
    assert (study.held_equal, study.bm25, study.items("methods")) == (
        "documents and pairs", True, ["diverse", "paraphrase"],
    )  # fmt: skip
    assert (study.model, study.spend) == ("m", 1.0)
    assert study_of(TrialConfig(corpus="c"), "b:dev", of(3.0)).spend is None


@pytest.mark.parametrize(
    ("splits", "asked", "split", "says"),
    [
        (("dev", "test"), "", "dev", ""),
        (("test", "validation"), "", "validation", ""),
        (("test", "train"), "", "train", "do not train on its queries later"),
        (("test",), "", "test", "Only the test split is there"),
        (("dev", "test"), "test", "test", "Only the test split is there"),
    ],
)
def test_the_test_split_decides_only_where_there_is_no_other(
    splits: tuple[str, ...], asked: str, split: str, says: str
) -> None:
    chosen, note = judging_split(splits, asked)
    assert chosen == split
    assert says in note
    assert bool(note) == bool(says)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError):
        TrialConfig.from_dict({"corpus": "c", "minutes": 0})
