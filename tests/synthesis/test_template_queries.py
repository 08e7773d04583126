"""Template queries that one may show: whole, about something they name, and of this passage and no other."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given

from cdp.base.records import Document
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators.template import TemplateGenerator
from cdp.synthesis.methods import METHODS
from cdp.synthesis.sentences import balanced, plain, sentences, whole
from cdp.synthesis.templates.english import Material
from tests.strategies import examples, texts
from tests.support import REPOSITORY

SHARED = REPOSITORY.parent / "shared" / "data"


def written(document: Document, method: str, m: int = 20) -> list[str]:
    return generate_for(document, METHODS[method], m, TemplateGenerator()).queries


@pytest.mark.slow
@given(text=texts(), title=texts(2))
@examples(60)
def test_brackets_and_quotes_are_closed_whatever_the_document(text: str, title: str) -> None:
    for method in ("diverse", "paraphrase"):
        assert all(balanced(query) for query in written(Document("x", text, title), method))


@pytest.mark.parametrize(
    ("sentence", "stands"),
    [
        ("The castle of Norburg was built in 1412.", "The castle of Norburg was built in 1412"),
        ("However, Norburg (founded in 1412) is a Danish harbour town of 412 people.",
         "Norburg is a Danish harbour town of 412 people"),
        ("CONCLUSIONS Residential rehabilitation is the preference of Norburg.",
         "Residential rehabilitation is the preference of Norburg"),
        ("In conclusion, we show that residential rehabilitation is what Norburg wants.",
         "Residential rehabilitation is what Norburg wants"),
        ("Norburg was the capital of a rich and powerful Danish kingdom of merchants, which had been ruled for as long "
         "as the oldest of all the merchants of the town could remember.", ""),
        ("It was closed in 1990 after a fire.", ""),
        ("This shows that the castle is old.", ""),
        ("The castle was built by the.", ""),
        ("After the war he sold the castle to Norburg.", ""),
        ("The town sold these castles in 1990.", ""),
        ("We visited the castle of Norburg in 1990.", ""),
        ('"The castle is old," said the king of Norburg.', ""),
        ("The castle of Norburg, known as the Red House.", ""),
        ("The castle is described in table 4 of the report.", ""),
        ("Is the castle of Norburg open to visitors?", ""),
    ],
)  # fmt: skip
def test_which_sentences_stand_alone(sentence: str, stands: str) -> None:
    found = Material(Document("x", f"{sentence} The hospital of Norburg treats 200 patients a day.")).quotations
    assert [text for text in found if "hospital" not in text] == [stands][: bool(stands)]


@pytest.mark.parametrize(
    ("sentence", "never"),
    [
        ("Perhaps the cells of the kidney were damaged by the drug.", "Perhaps"),
        ("However, these have shown that the cells grow.", "these have"),
        ("It was closed in 1990 after a fire in the east wing.", "it closed"),
        ("CONCLUSIONS Home care is the most common preference.", "CONCLUSIONS"),
        ("The ability to rapidly and reliably measure proteins is needed.", "rapidly and reliably measure?"),
        ('Nicholas "Nicky" Wu (born 1970) is a Taiwanese actor and singer.', '"Nicky"'),
    ],
)
def test_what_once_read_badly_does_so_no_more(sentence: str, never: str) -> None:
    document = Document("x", f"{sentence} The hospital of Norburg treats 200 patients a day.")
    assert not any(never in query for method in ("diverse", "paraphrase") for query in written(document, method, 4))


def test_people_are_asked_for_with_who_and_things_with_what() -> None:
    person = Document("p", "Ann Lee Norburg (born 4 May 1901) was a Danish painter.", "Ann Lee Norburg")  # fmt: skip
    assert "Who was Ann Lee Norburg?" in written(person, "diverse")
    assert any("that Ann Lee Norburg was a Danish painter" in query for query in written(person, "paraphrase", 3))
    film = Document("f", "Rain is a silent drama film. Rain was directed by Ann Lee in 1931.", "Rain")
    made = written(film, "diverse")
    assert "What is Rain?" in made
    assert "Who directed Rain?" in made


def test_the_title_stands_beside_a_whole_name_of_a_sentence_about_it() -> None:
    text = "Iron Bridge was painted by Norburg Stone Harbour. It fell into the Great Eastern Strait of Norburg in 1931."
    made = written(Document("x", text, "Iron Bridge"), "diverse")
    assert "Iron Bridge Norburg Stone Harbour" in made
    assert not any("Eastern" in query for query in made)


def test_a_sentence_about_the_title_is_a_claim_and_another_is_quoted_behind_it() -> None:
    text = "The Norburg Canal joins the harbour of Stone to the sea. Older machines of 1870 dug most of the way."
    made = written(Document("x", text, "Norburg Canal"), "diverse")
    assert any("that the Norburg Canal joins the harbour of Stone to the sea" in query for query in made)
    assert any(query.startswith("Norburg Canal: ") and '"Older machines of 1870 dug' in query for query in made)
    assert not any("that older machines" in query for query in made)


def test_a_story_is_asked_for_by_its_sentences_and_lines() -> None:
    text = (
        "Then the old miller carried his daughter to the castle of the king. She wept because of him and did not eat. "
        '"I shall spin the whole straw into gold," said the little man. But the girl gave her ring to the dwarf.'
    )
    made = written(Document("x", text, "the golden straw"), "diverse")
    assert any('"The old miller carried his daughter to the castle of the king"' in query for query in made)
    assert any('"I shall spin the whole straw into gold"' in query for query in made)
    assert any("The Golden Straw" in query for query in made)


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
    """240 passages of 48 titles: nearly no query of one is a query of another, and few are a title."""
    holders: Counter[str] = Counter()
    total = titles = 0
    for document in _documents(name):
        queries: set[str] = set()
        for method in ("diverse", "paraphrase"):
            made = written(document, method, 3)
            titles += plain(document.title.replace("_", " ")) in made
            assert all(balanced(query) for query in made)
            queries.update(made)
        holders.update(queries)
        total += len(queries)
    assert sum(n for n in holders.values() if n > 1) < 0.06 * total  # titles of passages without a whole sentence
    assert titles < 0.15 * 2 * 240
    assert total > 2.8 * 240


def test_a_german_date_ends_no_sentence_and_german_quotation_marks_close() -> None:
    text = "Resturlaub verfällt am 31. März des Folgejahres. Der 2. Weltkrieg endete 1945. Die Frist endet im Mai."
    assert sentences(text) == [
        "Resturlaub verfällt am 31. März des Folgejahres.", "Der 2. Weltkrieg endete 1945.", "Die Frist endet im Mai.",
    ]  # fmt: skip
    assert "She is 30 and older." in sentences("There were 31. Many of them left. I am 31. She is 30 and older.")
    for quoted in ("Wo steht „Die Frist endet im Mai“?", "Gdzie jest „koniec”?", "where is “the end”?"):
        assert whole(quoted) == quoted
    for left_open in ("Wo steht „Die Frist?", "where is “the end?"):
        assert whole(left_open) != left_open
