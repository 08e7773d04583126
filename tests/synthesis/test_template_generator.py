"""The template generator: distinct, repeatable, in the formats, and in the document's language."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from cdp.base.records import Document
from cdp.metrics import self_bleu
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators.template import TemplateGenerator
from cdp.synthesis.methods import METHODS
from cdp.synthesis.parsing import comparison_key
from cdp.synthesis.sentences import is_english, sentences
from tests.support import REPOSITORY

HONEY = Document(
    "honey",
    "Honey is a sweet substance made by bees from the nectar of flowers. Worker bees collect nectar and store it in "
    "wax cells called honeycomb. They fan the cells with their wings because the water must evaporate. Honey rarely "
    "spoils because it contains little water and is acidic. When honey is cooled, it crystallises. In 1922 "
    "archaeologists found pots of honey in an Egyptian tomb.",
    "Honey",
)
RUSSIAN = Document("r", "Байкал самое глубокое озеро мира. Озеро содержит пятую часть пресной воды планеты.", "Байкал")
CHINESE = Document(
    "z", "长城是中国古代的军事防御工程。长城修筑的历史可上溯到西周时期，明朝是最后一个大修长城的朝代。", "长城"
)
JAPANESE = Document(
    "j", "東大寺は奈良県奈良市にある寺院である。大仏の高さは約15メートルで、世界遺産に登録されている。", "東大寺"
)


def queries(document: Document, method: str, m: int, seed: int = 0) -> list[str]:
    return generate_for(document, METHODS[method], m, TemplateGenerator(seed)).queries


@pytest.mark.parametrize("method", ["diverse", "paraphrase"])
@pytest.mark.parametrize("m", range(1, 21))
def test_any_number_from_1_to_20_gives_that_many_distinct_queries(method: str, m: int) -> None:
    made = queries(HONEY, method, m)
    assert len({comparison_key(query) for query in made}) == m


@pytest.mark.parametrize("method", ["diverse", "paraphrase"])
def test_fewer_queries_are_the_first_of_more(method: str) -> None:
    twenty = queries(HONEY, method, 20)
    assert all(queries(HONEY, method, m) == twenty[:m] for m in range(1, 20))


def test_the_same_seed_repeats_and_another_differs() -> None:
    assert queries(HONEY, "diverse", 10, seed=1) == queries(HONEY, "diverse", 10, seed=1)
    assert queries(HONEY, "diverse", 10, seed=1) != queries(HONEY, "diverse", 10, seed=2)


def test_eight_diverse_queries_are_questions_and_statements() -> None:
    made = queries(HONEY, "diverse", 8)
    assert any(query.lower().startswith("what") for query in made)
    assert sum(not query.endswith("?") for query in made) >= 2


def test_diverse_queries_draw_on_most_sentences() -> None:
    made = " ".join(queries(HONEY, "diverse", 8)).lower()
    touched = sum(any(word in made for word in group) for group in (
        ("substance", "nectar"), ("worker", "cells"), ("wings", "evaporate"),
        ("spoil", "acidic"), ("cooled",), ("egyptian", "tomb"),
    ))  # fmt: skip
    assert touched >= 4


@pytest.mark.slow
def test_diverse_queries_repeat_less_than_paraphrases() -> None:
    """On the demo's documents: on average by far, and for nearly each of them."""
    documents = [json.loads(line) for line in (REPOSITORY / "data/demo/corpus.jsonl").read_text("utf-8").splitlines()]
    found = []
    for row in documents:
        short = Document(row["_id"], row["text"], row["title"])
        made = [queries(short, method, 5) for method in ("diverse", "paraphrase")]
        if min(map(len, made)) > 1:
            found.append([self_bleu(one) for one in made])
    assert len(found) > 0.8 * len(documents)
    diverse, paraphrase = np.array(found).T
    assert diverse.mean() < 0.55 * paraphrase.mean()
    assert (diverse <= paraphrase).mean() >= 0.95


def test_paraphrases_ask_about_one_thing() -> None:
    made = queries(HONEY, "paraphrase", 10)
    assert all("honey" in query.lower() for query in made)
    content = [set(re.findall(r"[a-z]{5,}", query.lower())) for query in made]
    assert len(set.intersection(*content)) >= 2


@pytest.mark.parametrize("document", [RUSSIAN, CHINESE, JAPANESE], ids=["ru", "zh", "ja"])
@pytest.mark.parametrize("method", ["diverse", "paraphrase"])
def test_other_languages_get_no_english_words(document: Document, method: str) -> None:
    made = queries(document, method, 3)
    assert len(made) >= 2
    assert not any(re.search(r"[A-Za-z]", query) for query in made)
    assert all(any(part in document.content for part in re.split("[:：,，、]", query)) for query in made)


def test_a_document_with_nothing_certain_gets_none() -> None:
    table = "the year | 36.2 | 17.5 | the year after | 40.1 | 12.9 | the sum of assets | 31.7 | 16.8"
    generation = generate_for(Document("x", table), METHODS["diverse"], 3, TemplateGenerator())
    assert generation.queries == []
    assert generation.problems["too_few"] == 3


def test_a_document_with_too_little_says_so() -> None:
    generation = generate_for(Document("x", "Ja."), METHODS["diverse"], 20, TemplateGenerator())
    assert generation.problems["too_few"] == 20 - len(generation.queries)
    assert 1 <= len(generation.queries) < 20


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "!!!",
        "1 2 3",
        "a",
        "\u200b",
        "ok " * 5000,
        "🙂🙂",
        "The.",
        "It is. They are.",
        ", and he left the old castle for good.",
        "“ , however, the castle was rebuilt by the king.",
        ' " is what it has .',
    ],
)
def test_odd_documents_do_not_break_it(text: str) -> None:
    for method in ("diverse", "paraphrase"):
        generation = generate_for(Document("x", text), METHODS[method], 20, TemplateGenerator())
        assert len(generation.queries) + generation.problems.get("too_few", 0) == 20


def test_sentences_and_their_language() -> None:
    assert len(sentences(HONEY.text)) == 6
    assert sentences("Dr. Smith met J. Doe in St. Louis today. They talked for hours.") == [
        "Dr. Smith met J. Doe in St. Louis today.",
        "They talked for hours.",
    ]
    assert is_english(HONEY.text)
    assert not is_english("Der Honig ist ein von Bienen erzeugtes Lebensmittel aus dem Nektar der Blüten.")


@pytest.mark.parametrize("title", [" ", "\u2003", "()", "( )", "?", ".", "_", "(a) "])
def test_odd_titles_do_not_break_it(title: str) -> None:
    for method in ("diverse", "paraphrase"):
        assert generate_for(Document("x", HONEY.text, title), METHODS[method], 3, TemplateGenerator()).queries


def test_sentences_end_where_they_did_before_they_were_split_in_one_pass() -> None:
    assert sentences("Dr. A. B. Smith came. It was late (and cold).\nA heading without a stop\nNext line here.") == [
        "Dr. A. B. Smith came.", "It was late (and cold).", "A heading without a stop", "Next line here.",
    ]  # fmt: skip
    assert len(sentences("Dr. A. " * 7000)) == 1
