"""Template queries that one may show: whole, about something they name, and of this passage and no other."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given

from cdp.base.records import Document
from cdp.synthesis import METHODS, generate_for
from cdp.synthesis.generators.template import TemplateGenerator
from cdp.synthesis.templates.phrases import balanced, is_presentable, plain
from tests.strategies import examples, texts
from tests.support import REPOSITORY

SHARED = REPOSITORY.parent / "shared" / "data"


def written(document: Document, method: str, m: int = 20) -> tuple[str, ...]:
    return generate_for(document, METHODS[method], m, TemplateGenerator()).queries


@given(text=texts(), title=texts(2))
@examples(60)
def test_brackets_and_quotes_are_closed_whatever_the_document(text: str, title: str) -> None:
    for method in ("diverse", "paraphrase"):
        assert all(balanced(query) for query in written(Document("x", text, title), method))


@pytest.mark.parametrize(
    ("query", "presentable"),
    [
        ("What is the castle?", True),
        ("Is it true that the castle was built in 1412?", True),
        ("What kind of film is Gold and the Woman?", True),
        ("Why does it matter?", False),
        ("Is it true that they left the castle?", False),
        ("This shows that the castle is old", False),
        ("The castle was built by the", False),
        ("The castle would be either an entirely new castle", False),
        ("The castle (built in 1412 is old", False),
        ("What is the castle of https://example.org", False),
    ],
)
def test_what_may_be_shown(query: str, presentable: bool) -> None:
    assert is_presentable(query) == presentable


@pytest.mark.parametrize(
    ("sentence", "never"),
    [
        ("Perhaps the cells of the kidney were damaged by the drug.", "Perhaps"),
        ("However, these have shown that the cells grow.", "these have"),
        ("It was closed in 1990 after a fire in the east wing.", "it closed"),
        ("CONCLUSIONS Home care is the most common preference.", "CONCLUSIONS"),
        ("The ability to rapidly and reliably measure proteins is needed.", "rapidly and reliably measure?"),
        ('Nicholas "Nicky" Wu (born 1970) is a Taiwanese actor and singer.', '"'),
    ],
)
def test_what_once_read_badly_does_so_no_more(sentence: str, never: str) -> None:
    document = Document("x", f"{sentence} The hospital of Norburg treats 200 patients a day.")
    assert not any(never in query for method in ("diverse", "paraphrase") for query in written(document, method, 4))


def test_people_are_asked_for_with_who_and_things_with_their_kind() -> None:
    person = Document("p", "Ann Lee Norburg (born 4 May 1901) was a Danish painter.", "Ann Lee Norburg")  # fmt: skip
    assert "Who was Ann Lee Norburg?" in written(person, "diverse")
    assert written(person, "paraphrase", 1) == ("Who was Ann Lee Norburg?",)
    film = Document("f", "Rain is a silent drama film. Rain was directed by Ann Lee in 1931.", "Rain")
    made = written(film, "diverse")
    assert "What kind of film is Rain?" in made
    assert "Who directed Rain in 1931?" in made


def test_a_reason_a_time_and_a_number_in_a_sentence_are_asked_for() -> None:
    text = "The bridge collapsed because the ice was thick. The bridge was rebuilt in 1890. The bridge has four arches."
    made = written(Document("x", text, "Norburg Bridge"), "diverse")
    assert {
        "Why did the bridge collapse?",
        "When was the bridge rebuilt?",
        "How many arches does the bridge have?",
    } <= {*made}


def test_passages_of_one_title_get_different_paraphrases_and_never_the_title_alone() -> None:
    passages = {
        "en": ("Norburg", "The old harbour was built in 1412 by merchants.", "The wool market closed because of a fire."),  # noqa: E501
        "fr": ("Norbourg", "Le vieux port fut construit en 1412 par des marchands.", "Le marché de Norbourg ferma en 1871."),  # noqa: E501
        "zh": ("诺堡", "诺堡的旧港口由商人建于1412年。", "诺堡的羊毛市场于1871年因火灾关闭。"),
        "ja": ("東大寺", "東大寺の大仏は奈良時代に造られた。", "東大寺の南大門は鎌倉時代に再建された。"),
        "ar": ("القلعة", "تم بناء ميناء القلعة القديم في عام 1412.", "أغلق سوق الصوف في القلعة بعد حريق كبير."),
    }  # fmt: skip
    for title, *texts_ in passages.values():
        one, two = (written(Document("x", text, title), "paraphrase", 3) for text in texts_)
        assert one
        assert two
        assert not {*one} & {*two}
        assert title not in {*one, *two}


def _documents(name: str) -> Iterator[Document]:
    with gzip.open(SHARED / "multiquery" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            yield Document(row["doc_id"], row["text"], row["title"])


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason="the benchmark data is not beside the repository")
@pytest.mark.parametrize("name", ["xquad_en", "xquad_ar", "xquad_ru", "xquad_zh"])
def test_real_passages_of_one_title(name: str) -> None:
    """240 passages of 48 titles: nearly no query of one is a query of another, and none is a title."""
    holders: Counter[str] = Counter()
    total = 0
    for document in _documents(name):
        queries: set[str] = set()
        for method in ("diverse", "paraphrase"):
            made = written(document, method, 3)
            assert plain(document.title.replace("_", " ")) not in made
            assert made
            assert all(balanced(query) for query in made)
            queries.update(made)
        holders.update(queries)
        total += len(queries)
    assert sum(n for n in holders.values() if n > 1) < 0.03 * total
