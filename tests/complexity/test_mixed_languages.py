"""Languages that share a script in one set: each query counts in its own, by its function words, where these tell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.complexity import content_words, count_content_words, lengths
from cdp.complexity.languages import language_written
from cdp.corpus import load_manifest, read_documents, store
from cdp.services import metrics
from cdp.training.plan import notes_of, prepare

# Counted by hand with the list of each language.
MIXED = {
    "en": ("Who built the bridge over the river?", {"built", "bridge", "river"}),
    "fr": ("Pourquoi la mer est-elle salée dans les ports du sud ?", {"mer", "salée", "ports", "sud"}),
    "de": ("Wie wird das Salz aus dem Meer und den Seen gewonnen?", {"salz", "meer", "seen", "gewonnen"}),
}
TEXTS = [text for text, _ in MIXED.values()]


@pytest.mark.parametrize("of_set", MIXED)
@pytest.mark.parametrize("language", MIXED)
def test_a_query_counts_the_same_in_a_set_of_any_language(language: str, of_set: str) -> None:
    text, expected = MIXED[language]
    assert language_written(of_set, text) == language
    assert content_words(text, of_set) == expected


@pytest.mark.parametrize(
    ("of_set", "text"),
    [
        ("en", "Hauptstadt Frankreich"), ("de", "capital of France"), ("fr", "Berlin Wall"),  # too few function words
        ("en", "Who sings La Vie en Rose?"), ("en", "the works of Juan de la Cruz and his la Vega"),
        ("fr", "Qui a fondé la ville de Los Angeles ?"), ("en", ""), ("xx", "the end of the world"),
    ],
)  # fmt: skip
def test_what_does_not_tell_stays_in_the_sets_language(of_set: str, text: str) -> None:
    assert language_written(of_set, text) == of_set


def test_languages_of_one_script_other_than_latin_are_told_too() -> None:
    ukrainian = "Що це за місто і чому його так називають, якщо воно не є столицею?"
    assert language_written("ru", ukrainian) == "uk"
    assert language_written("uk", "Какая столица у Франции и как она была построена в прошлом веке?") == "ru"


def test_lengths_are_of_the_words_of_each_language() -> None:
    assert lengths(["Où était la mer ?", *TEXTS], "en").tolist() == [4, 7, 11, 11]


@pytest.fixture
def mixed(workspace: Workspace, tmp_path: Path) -> str:
    """An English corpus in which one document of three is French and one German, each with its query."""
    source = tmp_path / "documents.jsonl"
    source.write_text("".join(json.dumps({"_id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(TEXTS)))
    with read_documents(source) as result:
        corpus = store(result, "mixed", workspace).id
    pairs = [(f"d{i}", [text]) for i, text in enumerate(TEXTS)]
    return query_sets.import_queries(iter(pairs), workspace, corpus, "mixed", language="en").query_set.id


def test_cw_and_weights_of_a_mixed_set_follow_each_querys_language(workspace: Workspace, mixed: str) -> None:
    assert set(load_manifest(workspace, query_sets.load(workspace, mixed).corpus_id).languages) == set(MIXED)
    measured = metrics.quick(workspace, mixed)
    assert measured.cw.mean == pytest.approx((3 + 4 + 4) / 3)
    assert count_content_words(TEXTS, "en").tolist() == [3, 4, 4]

    data = prepare(TrainingConfig(query_set=mixed, weighting="cw"), workspace)
    by_query = dict(zip(data.pairs.queries, data.weights.tolist(), strict=True))
    assert by_query == dict(zip(TEXTS, (3.0, 4.0, 4.0), strict=True))


def test_weights_by_a_stopword_list_of_ones_own(workspace: Workspace, mixed: str, tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("bridge\nriver\n", encoding="utf-8")
    config = TrainingConfig(query_set=mixed, weighting="cw", stopwords=str(own))
    data = prepare(config, workspace)
    english = data.pairs.queries.index(TEXTS[0])
    assert data.weights[english] == len({"who", "built", "the", "over"})
    assert any(note.startswith("Content words by a stopword list of one's own: 2 words") for note in notes_of(data))

    for weighting in ("none", "words", "cw-question-words"):
        with pytest.raises(ConfigError, match="changes content words alone"):
            prepare(config.replace(weighting=weighting), workspace)
    with pytest.raises(ConfigError, match="cannot be read"):
        prepare(config.replace(stopwords=str(tmp_path / "none.txt")), workspace)


def test_question_words_count_where_that_is_chosen(workspace: Workspace, mixed: str) -> None:
    plain = prepare(TrainingConfig(query_set=mixed, weighting="cw"), workspace)
    kept = prepare(TrainingConfig(query_set=mixed, weighting="cw-question-words"), workspace)
    added = dict(zip(kept.pairs.queries, np.round(kept.weights - plain.weights).tolist(), strict=True))
    # who, pourquoi; the German list has no question words set apart.
    assert added == dict(zip(TEXTS, (1.0, 1.0, 0.0), strict=True))
