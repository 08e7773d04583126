"""Names that are not known, or fit several things: what is offered, and what a beginning may stand for."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cdp.base.config import PromptTuningConfig, SynthesisConfig
from cdp.base.errors import ConfigError, NotFoundError, nearest, offer
from cdp.base.text import name_and_split, pick


@dataclass(frozen=True)
class Thing:
    id: str
    name: str


SALT, SALTED, SEA = Thing("salt-1a2b", "Salt"), Thing("salted-3c4d", "Fish"), Thing("sea-5e6f", "The Sea")
THINGS = [SALT, SALTED, SEA]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("paraphrases", "paraphrase"),
        ("Diverse", "diverse"),
        ("inpars-gbq", "inpars_gbq"),
        ("quite something else", ""),
        ("", ""),
    ],
)
def test_the_nearest_name_is_offered_and_nothing_where_none_is_near(name: str, meant: str) -> None:
    assert nearest(name, ["diverse", "paraphrase", "inpars_gbq"]) == meant


def test_an_offer_names_the_nearest_then_twenty_and_counts_the_rest() -> None:
    known = [f"table_{n}" for n in range(23)]
    words = offer("tabel_7", known)
    assert words.startswith("Did you mean table_7? There is: table_0, ")
    assert words.endswith("table_19 and 3 more.")
    assert offer("tabel_7", known, instead="See the list.") == "Did you mean table_7? See the list."
    assert offer("zzz", ["a"]) == "There is: a."
    assert offer("zzz", []) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [("salt-1a2b", SALT), ("salt", SALT), (" SALT ", SALT), ("salted", SALTED), ("the", SEA), ("sea-5", SEA)],
)
def test_a_thing_is_found_by_id_by_name_or_by_the_beginning_of_one(text: str, found: Thing) -> None:
    assert pick("corpus", text, THINGS) is found


def test_a_beginning_that_fits_several_is_refused_with_their_ids() -> None:
    with pytest.raises(
        ConfigError, match=r"'s' could be more than one corpus. Use the id: salt-1a2b, salted-3c4d, sea"
    ):
        pick("corpus", "s", THINGS)
    with pytest.raises(ConfigError, match="salt-1 and 1 more"):
        pick("corpus", "salt", [Thing(f"salt-{n}", "Salt") for n in (5, 4, 3, 2, 1, 0)])


def test_what_fits_nothing_is_refused_with_the_nearest_name_which_need_not_be_an_id() -> None:
    with pytest.raises(NotFoundError, match=r"No corpus is called 'Fihs'\. Did you mean Fish\?"):
        pick("corpus", "Fihs", THINGS)
    with pytest.raises(NotFoundError, match=r"called ''\. There is: salt-1a2b, "):
        pick("corpus", "", THINGS)
    with pytest.raises(NotFoundError, match=r"called 'salt'\. Add one\.$"):
        pick("corpus", "salt", [], none_yet="Add one.")


def test_a_setting_and_a_choice_that_are_misspelt_are_told_together() -> None:
    with pytest.raises(ConfigError) as refused:
        SynthesisConfig.from_dict({"corpus": "c", "temprature": 1, "generator": "tempalte", "per_doc": 0, "xyz": 1})
    told = str(refused.value)
    assert "'temprature' is not a setting (did you mean temperature?)" in told
    assert "not 'tempalte' (did you mean template?)" in told
    assert "'per_doc' must be at least 1, not 0" in told
    assert "'xyz' is not a setting (there is: corpus, method, " in told
    with pytest.raises(ConfigError, match=r"not 'OOD' \(did you mean ood\?\)"):
        PromptTuningConfig.from_dict({"corpus": "c", "target": "OOD"})


@pytest.mark.parametrize(
    ("text", "name", "split"),
    [
        ("scifact", "scifact", ""),
        ("scifact:dev", "scifact", "dev"),
        ("data/folder:test", "data/folder", "test"),
        ("c:/data/scifact", "c:/data/scifact", ""),
        ("c:\\data\\scifact:dev", "c:\\data\\scifact", "dev"),
        (":dev", ":dev", ""),
        ("", "", ""),
    ],
)
def test_a_split_stands_behind_the_last_colon_that_no_slash_follows(text: str, name: str, split: str) -> None:
    assert name_and_split(text) == (name, split)
