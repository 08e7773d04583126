"""Settings that nest and lists: each declared once, read in every form, stored as they were before they nested."""

from __future__ import annotations

import importlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cdp.base.config import Client, EndpointSettings, JudgeConfig, Loop, Scoring, SynthesisConfig, TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.settings import Config, altered, member, option
from cdp.studies.config import StudyConfig

for module in (
    "cdp.base.config", "cdp.studies.config", "cdp.corpus.options", "cdp.query_sets.given", "cdp.query_sets.imports",
    "cdp.cli.decide",
):  # fmt: skip
    importlib.import_module(module)

# Of each class before its settings nested: a stored specification, and for each setting what is typed and stored.
BEFORE: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "settings_of_before.json").read_text(encoding="utf-8")
)

# Names that mean one thing in one class and another in the next, with what they are of.
ANOTHER_THING = {
    "name": "of what is made: a query set, a benchmark, a retriever, a study",
    "seed": "of what is drawn",
    "batch_size": "of prompts, of pairs to score, of pairs to train on, of texts to encode",
    "budget": "of a run, of an embeddings endpoint, and a study's queries",
    "gpus": "one, or several",
    "precision": "of training, of encoding",
    "corpus": "what queries are written for, judged by, searched, compared",
    "query_set": "what a job works on, and what a target is counted from",
    "retriever": "what is trained, what searches, what an imported run is called",
    "benchmark": "what judges, what is downloaded, what is judged again, what a target is counted from",
    "per_doc": "to write, to take, to compare",
    "limit": "of documents, of target queries",
    "documents": "of a sample",
    "queries": "a file, a number",
    "methods": "candidates, what a study compares",
    "retrievers": "whose documents are judged, what a study trains",
    "teacher": "what gives labels, what a study mines with",
    "cross_encoder": "what filters, what gives labels",
    "learning_rate": "one, or those that a study compares",
    "reasoning": "one set, or one for each of a study",
    "hybrid": "instead of a retriever, beside it",
    "seeds": "which, how many",
    "spend": "of a study, of a test",
    "stopwords": "of a weighting, of the target's content words",
    "model": "what is asked, and what wrote imported queries",
    "prompt": "what is sent, and what wrote imported queries",
    "licence": "of documents, of queries",
    "origin": "of queries in a file of them, of those beside documents",
    "query_field": "of documents' queries, of a file of queries",
    "grade_field": "of documents' queries, of a file of queries",
    "trained_layers": "of a training; of a test, where empty means by the machine",
    "untrained": "of a study, of a test, which adds those at hand",
}


class Place(Config):
    """A member."""

    street: str = option("", "The street.")
    number: int | None = option(None, "The number.", minimum=1)


class Abroad(Place):
    """The member with another default."""

    street: str = altered(Place, "street", default="abroad")


class Letter(Config):
    """A whole with two members, one of them deeper, and lists."""

    to: str = option("", "Whom.")
    place: Place = member()
    copies: tuple[str, ...] = option(("a", "b"), "Who gets copies.", choices=("a", "b", "c"))
    days: tuple[int, ...] = option((), "On which days.", minimum=1, maximum=31)
    weights: tuple[float, ...] = option((), "How heavy.")


class Parcel(Config):
    letter: Letter = member()
    heavy: bool = option(False, "Is it?")


@pytest.mark.parametrize(
    "values",
    [
        {"street": "s", "number": "3"},
        {"place": {"street": "s", "number": 3}},
        {"place.street": "s", "place": {"number": 3}},
        {"place": "street=s, number = 3"},
        {"place": Place(street="s", number=3)},
        {"place": Abroad(street="s"), "number": 3},
        {"number": 9, "place.number": 3, "street": "s"},
    ],
)
def test_a_member_is_given_by_its_settings_or_as_a_whole(values: Mapping[str, Any]) -> None:
    letter = Letter.from_dict(values)
    assert letter.place == Place(street="s", number=3)
    assert letter == Letter.model_validate(values)
    assert Letter.from_dict(letter.to_dict()) == letter


def test_members_of_members_are_known_by_the_names_of_their_settings() -> None:
    assert list(Parcel.settings()) == ["to", "street", "number", "copies", "days", "weights", "heavy"]
    parcel = Parcel.from_dict({"street": "s", "letter.place.number": 2, "letter": {"days": [1]}})
    assert (parcel.letter.place.street, parcel.letter.place.number, parcel.letter.days) == ("s", 2, (1,))
    assert parcel.replace(number=5).to_dict() == {**parcel.to_dict(), "number": 5}


def test_a_member_has_another_default_where_that_is_said() -> None:
    class Foreign(Config):
        place: Abroad = member()

    assert Foreign().place.street == Foreign.settings()["street"].default == "abroad"
    assert Foreign.settings()["street"].help == Place.settings()["street"].help


def test_two_settings_of_one_name_are_found_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="Twice has two settings of one name: number"):

        class Twice(Config):
            place: Place = member()
            number: int = option(1, "Another number.")


def test_what_is_wrong_in_members_and_beside_them_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as told:
        Letter.from_dict({"number": 0, "place.stret": "s", "days": "1, 40", "copies": "a, d", "weigts": "x"})
    assert str(told.value) == (
        "'number' must be at least 1, not 0; 'stret' is not a setting (did you mean street?); 'copies' must be one of "
        "a, b, c, not 'd'; 'days' must be at most 31, not 40; 'weigts' is not a setting (did you mean weights?)."
    )
    with pytest.raises(ConfigError, match="'place' must hold entries like name=value, not 'street'"):
        Letter.from_dict({"place": "street"})
    with pytest.raises(ConfigError, match="'place' must hold entries like name=value, not a list"):
        Letter.from_dict({"place": [1]})


@pytest.mark.parametrize("value", ["3, 1,3 ,", [3, 1], ["3", "1e0"], (3, 1)])
def test_a_list_is_a_text_with_commas_or_a_list(value: Any) -> None:
    letter = Letter.from_dict({"days": value})
    assert letter.days == (3, 1)
    assert letter.to_dict()["days"] == "3, 1"


def test_one_value_is_a_list_and_none_is_not() -> None:
    assert Letter.from_dict({"days": 7, "copies": "", "weights": "1e-07; 2"}).to_dict() == {
        **Letter().to_dict(), "days": "7", "copies": "", "weights": "1e-07, 2.0",
    }  # fmt: skip
    for wrong, words in (
        (None, "'days' is missing"),
        ("x", "'days' must be whole numbers, not 'x'"),
        ([1, None], "'days' is missing"),
        ([True], "'days' must be whole numbers, not a list"),
        ({"a": 1}, "'days' must be whole numbers, not a dict"),
        (["1,2"], "'days' holds '1,2': an entry cannot contain a comma"),
        (10**5000, "'days' must be a whole number of at most"),
    ):
        with pytest.raises(ConfigError, match=words):
            Letter.from_dict({"days": wrong})


def test_a_list_is_a_text_for_forms_and_commands() -> None:
    setting = Letter.settings()["copies"]
    assert (setting.kind, setting.entries, setting.default) == (str, str, "a, b")


def _classes(of: type[Config] = Config) -> Iterator[type[Config]]:
    for kind in of.__subclasses__():
        if kind.__module__.startswith("cdp."):
            yield kind
        yield from _classes(kind)


def _declaration(kind: type[Config], name: str) -> object:
    """The place of a setting's first declaration: a class's own, a shared constant, or what it was altered from."""
    first = [base for base in kind.__mro__ if name in getattr(base, "model_fields", {})][-1]
    extra: Any = first.model_fields[name].json_schema_extra
    return _declaration(*extra["of"]) if "of" in extra else id(extra["setting"])


def test_no_class_repeats_the_setting_of_another() -> None:
    declared: dict[str, set[object]] = defaultdict(set)
    for kind in _classes():
        for name in kind.model_fields.keys() - kind.members().keys():
            declared[name].add(_declaration(kind, name))
    assert {name for name, places in declared.items() if len(places) > 1} == ANOTHER_THING.keys()


def test_what_belongs_together_stands_in_one_class() -> None:
    """A second class that needs a generator with its model and address takes the endpoint as its member."""
    for name, of in (("base_url", EndpointSettings), ("timeout", Client), ("scorer", Scoring), ("weight_decay", Loop)):
        assert [kind for kind in _classes() if name in kind.__annotations__] == [of]


@pytest.mark.parametrize("name", BEFORE)
def test_what_was_typed_and_stored_before_settings_nested_is_read_as_it_was(name: str) -> None:
    kind = next(kind for kind in _classes() if kind.__name__ == name)
    before = BEFORE[name]
    for setting, typed, stored in before["settings"]:
        made = kind.from_dict(typed).to_dict()
        if setting == "training":  # further settings of a study, in one text, are settings of their own now
            assert (made["eval_steps"], made["weight_decay"]) == (10, 0.1)
        elif (name, setting) == ("TrialConfig", "per_doc"):  # one number is a list of one
            assert made[setting] == str(stored)
        else:
            assert made[setting] == stored, setting

    spec = before["spec"]
    made = kind.from_dict(spec).to_dict()
    # The spaces of a list are no part of it.
    plain = {
        key: value.replace(",", ", ").replace("  ", " ") if key == "methods" else value for key, value in spec.items()
    }
    if name == "TrialConfig":  # one number is a list of one
        plain["per_doc"] = str(spec["per_doc"])
    assert {key: made[key] for key in spec if key != "training"} == {k: v for k, v in plain.items() if k != "training"}


def test_the_further_settings_of_a_stored_study_win_over_empty_ones() -> None:
    spec = {**BEFORE["StudyConfig"]["spec"], "training": "epochs=3, hard_negatives=2"}
    assert spec["epochs"] is None
    training = StudyConfig.from_dict(spec).training
    assert (training.epochs, training.hard_negatives) == (3, 2)


def test_a_member_is_handed_on_as_a_whole() -> None:
    judge = JudgeConfig.from_dict({"corpus": "c", "model": "m", "timeout": 7, "writer": "w", "seed": 3})
    answers, writes = judge.synthesis, judge.writing("{document} {M}", 3, 20)
    assert (answers.endpoint.model, answers.endpoint.timeout, answers.seed) == ("m", 7.0, 0)
    assert (answers.endpoint.max_output_tokens, writes.endpoint.max_output_tokens) == (512, 2048)
    assert (writes.endpoint.model, writes.endpoint.max_document_tokens, writes.seed) == ("w", 1024, 3)
    study = StudyConfig.from_dict({"benchmarks": "b", "query_sets": "q", "batch_size": 4, "lora_rank": 2})
    assert TrainingConfig(query_set="q", loop=study.training).to_dict()["lora_rank"] == 2
    assert SynthesisConfig(corpus="c", endpoint=judge.endpoint).endpoint == Client(**judge.endpoint.to_dict())
