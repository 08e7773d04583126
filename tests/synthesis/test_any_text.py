"""Whatever a document or an answer holds: queries or a CdpError, and time linear in its length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from cdp.base.config import SynthesisConfig
from cdp.base.records import Document
from cdp.base.text import cut_to_tokens
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators.cropping import CroppingGenerator
from cdp.synthesis.generators.recorded import RecordedGenerator
from cdp.synthesis.generators.template import TemplateGenerator
from cdp.synthesis.methods import METHODS
from cdp.synthesis.parsing import (
    LONGEST_PASSAGE,
    parse,
    parse_after_summary,
    parse_line,
    parse_passage,
    parse_task_query,
)
from cdp.synthesis.sentences import sentences
from tests.strategies import LONG, SOAK, examples, is_linear, result_or_error, texts

PARSERS = (parse, parse_line, parse_passage, parse_after_summary, parse_task_query)
STARTS = ("", "1. ", "1. q", "Question: ", "Task: a\nQuery: ", '["', '{"queries": [', "<think>")


class AnyOrder:
    """A cross-encoder's place: scores by length, no model."""

    def predict(self, pairs: Sequence[tuple[str, str]], show_progress_bar: bool) -> Any:
        for pair in pairs:
            for text in pair:
                text.encode("utf-8")  # a tokenizer refuses half characters
        return np.array([len(sentence) for sentence, _ in pairs])


def written(document: Document, method: str, m: int) -> list[str]:
    """What the template generator gives, checked for what every answer promises."""
    source = ("what is it about",) if METHODS[method].from_queries else ()
    generation = generate_for(document, METHODS[method], m, TemplateGenerator(), queries=source)
    assert len(generation.queries) <= m
    assert all(any(c.isalnum() for c in query) and query == query.strip() for query in generation.queries)
    return generation.queries


@pytest.mark.slow
@given(text=texts(), title=texts(2))
@examples(60)
def test_the_template_generator_takes_any_document(text: str, title: str) -> None:
    for method in ("diverse", "paraphrase", "reasoning"):
        for document in (Document("x", text, title), Document("x", text)):
            most = written(document, method, 20)
            assert written(document, method, 3) == most[:3]


@given(text=texts(), title=texts(2))
@examples(15)
def test_cropping_and_recorded_answers_take_any_document(text: str, title: str) -> None:
    cropping = CroppingGenerator(SynthesisConfig(corpus="c", method="dragon_s_paper"))
    cropping._encoder = AnyOrder()
    document = Document("x", text, title)
    result_or_error(lambda: generate_for(document, METHODS["dragon_s_paper"], 3, cropping))
    result_or_error(lambda: generate_for(document, METHODS["diverse"], 3, RecordedGenerator()))


@pytest.mark.slow
@given(text=texts(), more=texts(4))
@examples(60)
def test_any_answer_is_read(text: str, more: str) -> None:
    for reader in PARSERS:
        for start in STARTS:
            parsed = reader(f"{start}{text}\n2. {more}", 3)
            assert len(parsed.queries) <= 3
            assert all(0 < len(query) <= LONGEST_PASSAGE for query in parsed.queries)


@given(texts())
@examples(30)
def test_no_document_closes_its_own_tag(one: str) -> None:
    assert "</document" not in METHODS["diverse"].render(one, 3).split("</document>")[0].lower()


def template(method: str) -> Callable[[str], Any]:
    return lambda text: written(Document("x", text, text[:200]), method, 5)


LINEAR: dict[str, Callable[[str], Any]] = {
    "sentences": sentences,
    "cut": lambda text: cut_to_tokens(text, 2048),
    "prompt": lambda text: METHODS["diverse"].render(text, 3),
    "diverse": template("diverse"),
    "paraphrase": template("paraphrase"),
    **{
        f"{reader.__name__} {start}": lambda text, reader=reader, start=start: reader(start + text, 3)
        for reader, start in [*((reader, "") for reader in PARSERS), *((parse, start) for start in STARTS[1:])]
    },
}
WORST = ("abbreviations", "brackets", "nested", "spaces", "lines", "dots", "thoughts", "escapes", "labels", "tags")


@pytest.mark.slow
@pytest.mark.parametrize("name", LINEAR)
def test_time_grows_with_the_length_and_not_with_its_square(name: str) -> None:
    patterns, most = (LONG, 32_000) if SOAK else (WORST, 8_000)
    assert [pattern for pattern in patterns if not is_linear(LINEAR[name], LONG[pattern], most=most)] == []


@pytest.mark.slow
def test_a_megabyte_of_anything_gives_queries() -> None:
    for pattern, n in (("Dr. A. ", 1), ("word ", 1), ("(", 0)):
        assert len(written(Document("x", pattern * (1_000_000 // len(pattern))), "diverse", 3)) == n, pattern
