"""What counts as a content word, language by language, and what the edges of the definition are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from cdp.base.errors import ConfigError, InputError
from cdp.complexity import (
    LANGUAGES,
    QUESTION_WORDS_KEPT,
    STANDARD,
    content_words,
    count_content_words,
    language_of,
    stopword_list,
    stopword_variants,
)
from cdp.complexity.languages import language_written
from cdp.training.weightings.content_words import capped_content_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What is the capital of France?", {"capital", "france"}),
        ("don't won't isn't", set()),
        ("covid19 naïve snake_case plain", {"plain"}),
        ("The THE the cat Cat", {"cat"}),
        ("x y z", set()),
        ("", set()),
        ("   \n\t", set()),
        ("🙂 👩‍👩‍👧 party", {"party"}),
        ("Wann? when 什么 где retrieval", {"wann", "retrieval"}),
    ],
)
def test_english(text: str, words: set[str]) -> None:
    assert content_words(text) == words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("ru", "Какая столица у Франции в 1789 году?", {"столица", "франции", "1789"}),
        ("ar", "ما هي عاصمة فرنسا؟", {"عاصمة", "فرنسا"}),
        ("fr", "Pourquoi l'hôtel de Paris est-il célèbre ?", {"hôtel", "paris", "célèbre"}),
        ("zh", "复旦大学在哪里？", {"复旦大学"}),
        ("ja", "東京の人口はいくらですか。", {"東京", "人口", "いくら"}),
        ("ko", "일본의 화폐 단위는 무엇인가?", {"일본", "화폐", "단위"}),
        ("de", "Welche Hauptstadt hat Österreich?", {"hauptstadt", "österreich"}),
        ("hi", "भारत की राजधानी दिल्ली है", {"भारत", "राजधानी", "दिल्ली"}),
    ],
)
def test_other_languages(language: str, text: str, words: set[str]) -> None:
    assert content_words(text, language) == words


def test_decomposed_letters_are_the_same_words() -> None:
    assert content_words("ce\u0301le\u0300bre ho\u0302tel", "fr") == {"célèbre", "hôtel"}


@pytest.mark.slow
def test_question_words_can_be_kept() -> None:
    assert content_words("Pourquoi Paris ?", "fr") == {"paris"}
    assert content_words("Pourquoi Paris ?", "fr", stopwords=QUESTION_WORDS_KEPT) == {"pourquoi", "paris"}
    assert content_words("长城在哪里", "zh", stopwords=QUESTION_WORDS_KEPT) == {"长城", "哪里"}


@pytest.mark.slow
def test_question_words_count_in_every_language_of_the_paper() -> None:
    for language, question in {
        "en": "Why and how do tides turn?", "ru": "Почему небо синее?", "ar": "متى ماذا عاصمة فرنسا؟",
        "ja": "どこで東京の人に会いますか", "ko": "언제 만납니까?",
    }.items():  # fmt: skip
        more = content_words(question, language, stopwords=QUESTION_WORDS_KEPT) - content_words(question, language)
        assert more, language
        assert more <= stopword_list(language)


@pytest.mark.slow
def test_korean_endings_are_no_content_words() -> None:
    """Kiwi writes the ending of 만납니까 with a conjoining letter, so the stopword list did not have it."""
    assert content_words("언제 먹습니까?", "ko") == set()
    assert content_words("언제 만납니까?", "ko") == {"만나"}
    assert content_words("서울에서 언제 만나요?", "ko") == {"서울", "만나"}


@pytest.mark.slow
def test_a_sentence_in_traditional_and_simplified_chinese_has_one_cw() -> None:
    traditional, simplified = "為什麼這個國家的經濟發展得這麼快?", "为什么这个国家的经济发展得这么快?"
    assert content_words(traditional, "zh") == content_words(simplified, "zh") == {"国家", "经济", "发展"}
    assert content_words("長城在哪裡", "zh", stopwords=QUESTION_WORDS_KEPT) == {"长城", "哪里"}


def test_a_list_of_ones_own_is_a_file_with_a_word_per_line(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("Tides\n\nthe\n", encoding="utf-8")
    assert content_words("Why do the tides turn?", stopwords=str(own)) == {"why", "do", "turn"}
    own.write_text("Tides\n\nthe\n", encoding="utf-8-sig")  # as Windows saves it
    assert content_words("Why do the tides turn?", stopwords=str(own)) == {"why", "do", "turn"}
    with pytest.raises(ConfigError, match="cannot be read"):
        content_words("a", stopwords=str(tmp_path / "none.txt"))


@pytest.mark.slow
def test_a_mixture_of_languages_counts_each_query_in_its_own() -> None:
    """One import of ru, zh, ar, en and fr was a Chinese set: most of the queries of the others had no content word."""
    mixed = {
        "ru": "Какая столица у Франции в 1789 году?", "zh": "复旦大学在哪里？", "ar": "ما هي عاصمة فرنسا؟",
        "en": "What is the capital of France?", "fr": "Pourquoi le roi de France est mort dans la ville de Paris ?",
    }  # fmt: skip
    for main in ("zh", "ru", "ar"):
        counted = count_content_words(mixed.values(), main).tolist()
        assert counted == [int(count_content_words([text], language)[0]) for language, text in mixed.items()]
        weights = capped_content_words(list(mixed.values()), main, 100.0)
        assert (weights > 0).all()


def test_the_papers_question_words_are_stopwords_of_the_standard_lists_only() -> None:
    for language, words in {
        "fr": ("quel", "comment", "pourquoi", "quand"),
        "zh": ("什么", "为什么", "哪里", "怎么"),
    }.items():
        assert stopword_list(language).issuperset(words)
        assert stopword_list(language, QUESTION_WORDS_KEPT).isdisjoint(words)


def test_the_lists_that_can_be_chosen() -> None:
    assert stopword_variants("fr") == stopword_variants("zh") == (STANDARD, QUESTION_WORDS_KEPT)
    assert stopword_variants("de") == (STANDARD,)
    assert all(QUESTION_WORDS_KEPT in stopword_variants(language) for language in LANGUAGES)


def test_unusable_lists_are_named() -> None:
    with pytest.raises(ConfigError, match="'xx'"):
        content_words("a", "xx")
    with pytest.raises(ConfigError, match="not set apart"):
        content_words("a", "de", stopwords=QUESTION_WORDS_KEPT)
    with pytest.raises(ConfigError, match="No stopword list"):
        content_words("a", "en", stopwords="short")


def test_counts_are_the_sizes_of_the_sets() -> None:
    texts = ["What is the capital of France?", "", "one two three"]
    counts = count_content_words(texts)
    assert counts.dtype == np.int64
    assert counts.shape == (3,)
    assert counts.tolist() == [len(content_words(text)) for text in texts]
    assert count_content_words([]).shape == (0,)
    assert count_content_words(text for text in texts).tolist() == counts.tolist()
    with pytest.raises(InputError, match="One text"):
        count_content_words("text")


@pytest.mark.slow
@pytest.mark.parametrize("language", [*LANGUAGES, "de", "th"])
def test_odd_texts_have_a_defined_count(language: str) -> None:
    odd = ["", " ", "?!…", "🙂🙂", "\u202bשלום עולם\u202c", "\ud83d", "a\0b", "mixed 中文 русский عربي 한국어 text"]
    counts = count_content_words(
        [*odd, "word " * 2_000, " ".join(f"w{chr(97 + i % 26)}{i}x" for i in range(2_000))], language
    )
    assert counts.shape == (len(odd) + 2,)
    assert counts[:4].tolist() == [0, 0, 0, 0]
    assert counts[len(odd)] == 1


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@example("A0B éa")
@given(st.text(max_size=200))
def test_english_agrees_with_the_definition(text: str) -> None:
    import re

    assume(language_written("en", text) == "en")  # "E0À" has two function words of Portuguese and no English one
    expected = {t for t in re.findall(r"\b[a-zA-Z]+\b", text.lower()) if len(t) > 1} - stopword_list("en")
    assert content_words(text) == expected


def test_the_table_says_how_each_language_is_counted() -> None:
    assert list(LANGUAGES) == ["en", "ru", "ar", "fr", "zh", "ja", "ko"]
    for code, language in LANGUAGES.items():
        size = len(stopword_list(code))
        assert str(size) in language.stopwords
    assert "not one of the paper's" in language_of("de").tokenizer
    assert "far too low" in language_of("th").tokenizer
    assert [language_of(code).name for code in ("de", "ka", "th", "en", "xx")] == [
        "German", "Georgian", "Thai", "English", "xx",
    ]  # fmt: skip
    assert "every word counts" in language_of("ta").stopwords
    assert content_words("இது ஒரு சொல்", "ta") == {"இது", "ஒரு", "சொல்"}


@pytest.mark.slow
def test_importing_the_room_loads_no_tokenizer_and_chinese_is_quiet_and_leaves_nothing_behind(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from cdp.complexity import content_words
        assert not {"jieba", "fugashi", "kiwipiepy", "torch"} & set(sys.modules)
        assert content_words("复旦大学", "zh") == {"复旦大学"}
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PATH": "", "TMPDIR": str(tmp_path)},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_query_in_another_script_counts_by_its_own_words() -> None:
    """A few Japanese, Korean and Russian queries for a corpus that is mostly English, each as it would count alone."""
    queries = {
        "en": ["What is the capital of France?", "Who wrote 源氏物語 in Japan"],
        "ja": ["東京の人口はいくらですか。", "カタカナ BERT モデルの精度"],
        "zh": ["复旦大学在哪里？"],
        "ko": ["일본의 화폐 단위는 무엇인가?"],
        "ru": ["Какая столица у Франции в 1789 году?"],
        "ar": ["ما هي عاصمة فرنسا؟"],
    }
    mixed = [text for texts in queries.values() for text in texts]
    alone = [int(n) for code, texts in queries.items() for n in count_content_words(texts, code)]
    assert count_content_words(mixed, "en").tolist() == alone
    assert min(alone) > 0

    # One script may be that of several languages: the corpus's own stays.
    assert language_written("ja", "東京大学") == language_written("ja", "東京の") == "ja"
    assert language_written("uk", "Скільки людей живе в Києві?") == "uk"
    assert language_written("fr", "Où est la gare ?") == "fr"
    # The variant of a list that only some languages have.
    assert content_words("東京の人口は", "en") == content_words("東京の人口は", "fr", stopwords=QUESTION_WORDS_KEPT)
