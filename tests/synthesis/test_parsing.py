"""Parsing: every style an answer may have, and every problem counted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdp.synthesis.parsing import Parsed, parse, parse_after_summary, parse_task_query

LINES = "1. What is a fjord?\n2. How does ice carve rock?\n3. fjord depth Norway"
THREE = ("What is a fjord?", "How does ice carve rock?", "fjord depth Norway")

WELL_FORMED = {
    "continues after 1.": "What is a fjord?\n2. How does ice carve rock?\n3. fjord depth Norway",
    "leading space": " What is a fjord?\n2. How does ice carve rock?\n3. fjord depth Norway\n",
    "1.": "1. What is a fjord?\n2. How does ice carve rock?\n3. fjord depth Norway",
    "1)": "1) What is a fjord?\n2) How does ice carve rock?\n3) fjord depth Norway",
    "(1)": "(1) What is a fjord?\n(2) How does ice carve rock?\n(3) fjord depth Norway",
    "1:": "1: What is a fjord?\n2: How does ice carve rock?\n3: fjord depth Norway",
    "1 -": "1 - What is a fjord?\n2 - How does ice carve rock?\n3 - fjord depth Norway",
    "no space": "1.What is a fjord?\n2.How does ice carve rock?\n3.fjord depth Norway",
    "fullwidth": "１．What is a fjord?\n２．How does ice carve rock?\n３．fjord depth Norway",
    "ideographic comma": "1、What is a fjord?\n2、How does ice carve rock?\n3、fjord depth Norway",
    "arabic-indic": "١. What is a fjord?\n٢. How does ice carve rock?\n٣. fjord depth Norway",
    "all ones": "1. What is a fjord?\n1. How does ice carve rock?\n1. fjord depth Norway",
    "Q1": "Q1: What is a fjord?\nQ2: How does ice carve rock?\nQ3: fjord depth Norway",
    "Query 1": "Query 1: What is a fjord?\nQuery 2: How does ice carve rock?\nQuery 3: fjord depth Norway",
    "bold numbers": "**1.** What is a fjord?\n**2.** How does ice carve rock?\n**3.** fjord depth Norway",
    "bold queries": "1. **What is a fjord?**\n2. **How does ice carve rock?**\n3. *fjord depth Norway*",
    "quotes": '1. "What is a fjord?"\n2. “How does ice carve rock?”\n3. «fjord depth Norway»',
    "labels": "1. What: What is a fjord?\n2. **How:** How does ice carve rock?\n3. (Keyword) fjord depth Norway",
    "blank lines": "1. What is a fjord?\n\n2. How does ice carve rock?\n\n\n3. fjord depth Norway",
    "windows": "1. What is a fjord?\r\n2. How does ice carve rock?\r\n3. fjord depth Norway\r\n",
    "dashes": "- What is a fjord?\n- How does ice carve rock?\n- fjord depth Norway",
    "bullets": "• What is a fjord?\n• How does ice carve rock?\n• fjord depth Norway",
    "stars": "* What is a fjord?\n* How does ice carve rock?\n* fjord depth Norway",
    "plain": "What is a fjord?\nHow does ice carve rock?\nfjord depth Norway",
    "one line": "What is a fjord? 2. How does ice carve rock? 3. fjord depth Norway",
    "preamble": "Here are 3 queries:\n\n1. What is a fjord?\n2. How does ice carve rock?\n3. fjord depth Norway",
    "sure": f"Sure! Here are three queries for you.\n{LINES}",
    "preamble, bullets": "Queries:\n- What is a fjord?\n- How does ice carve rock?\n- fjord depth Norway",
    "rule": "1. What is a fjord?\n2. How does ice carve rock?\n3. fjord depth Norway\n---",
    "fence": "```\n1. What is a fjord?\n2. How does ice carve rock?\n3. fjord depth Norway\n```",
    "think": f"<think>1. maybe this?\n2. or that</think>\n{LINES}",
    "think, no opening": f"1. hm\n2. so\n</think>\n\n{LINES[3:]}",
    "json array": json.dumps(THREE),
    "json object": json.dumps({"queries": THREE}),
    "json objects": json.dumps([{"query": query, "format": "what"} for query in THREE]),
    "json nested": json.dumps({"queries": [{"id": 1, "text": query} for query in THREE]}),
    "json numbered": json.dumps(dict(zip("123", THREE, strict=True))),
    "json other key": json.dumps({"search_terms": THREE}),
    "json fence": f"```json\n{json.dumps({'queries': THREE}, indent=2)}\n```",
    "json after text": f"Here are the queries:\n\n```json\n{json.dumps(THREE)}\n```\nLet me know!",
    "json after thinking": f"<think>[1]</think>{json.dumps(THREE)}",
    "json lines": "\n".join(json.dumps({"query": query, "type": "factoid"}) for query in THREE),
    "json in two parts": json.dumps({"queries": THREE[:1]}) + "\n" + json.dumps({"queries": THREE[1:]}),
    "json encoded twice": json.dumps(json.dumps({"queries": THREE})),
    "json beside a text": json.dumps({"text": "A fjord is an inlet.", "queries": THREE}),
    "heading above": "### Query 1\nWhat is a fjord?\n\n### Query 2\nHow does ice carve rock?\n### Query 3\n" + THREE[2],
    "number above": f"1.\n{THREE[0]}\n2.\n{THREE[1]}\n3.\n{THREE[2]}",
    "format above": f"**1. What**\n{THREE[0]}\n**2. How**\n{THREE[1]}\n**3. Keyword**\n{THREE[2]}",
    "format behind": f"1. {THREE[0]} (What)\n2. {THREE[1]} **(How)**\n3. {THREE[2]} (keyword query)",
    "ringed": f"① {THREE[0]}\n② {THREE[1]}\n③ {THREE[2]}",
    "keycaps": f"1\ufe0f\u20e3 {THREE[0]}\n2\ufe0f\u20e3 {THREE[1]}\n3\ufe0f\u20e3 {THREE[2]}",
    "letters": f"Here you go:\na. {THREE[0]}\nb. {THREE[1]}\nc. {THREE[2]}",
    "letters in brackets": f"(A) {THREE[0]}\n(B) {THREE[1]}\n(C) {THREE[2]}",
    "roman": f"i. {THREE[0]}\nii. {THREE[1]}\niii. {THREE[2]}",
    "table": "| # | Query |\n|---|:---|\n" + "\n".join(f"| {n} | {query} |" for n, query in enumerate(THREE)),
    "tags": "<queries>\n" + "\n".join(f"<query>{query}</query>" for query in THREE) + "\n</queries>",
    "numbered tags": "".join(f'<query_{n} type="x">{query}</query_{n}>' for n, query in enumerate(THREE)),
    "web list": "<ol>" + "".join(f"<li>{query}</li>" for query in THREE) + "</ol>",
}


# What Python prints is no JSON, and said to be none.
PYTHON = {"list": repr(list(THREE)), "object": repr({"queries": ["What's a fjord?", *THREE[1:]]})}


@pytest.mark.parametrize("style", PYTHON)
def test_lists_as_python_prints_them(style: str) -> None:
    parsed = parse(PYTHON[style], 3)

    assert [query.replace("'s", " is") for query in parsed.queries] == list(THREE)
    assert parsed.problems == {"broken_json": 1}


@pytest.mark.parametrize(
    "refusal",
    [
        "Désolé, je ne peux pas répondre à cette demande.", "抱歉，我无法满足该请求。", "Lo siento, no puedo ayudar.",
        "Es tut mir leid, aber dabei kann ich nicht helfen.", "申し訳ありませんが、お手伝いできません。",
    ],
)  # fmt: skip
def test_a_refusal_in_another_language_is_no_query(refusal: str) -> None:
    assert parse(refusal, 3) == Parsed((), {"refusal": 1, "too_few": 3})


@pytest.mark.parametrize("style", WELL_FORMED)
def test_well_formed_answers_in_every_style(style: str) -> None:
    parsed = parse(WELL_FORMED[style], 3)
    assert parsed.queries == THREE
    assert parsed.problems == {}


@pytest.mark.parametrize(
    ("answer", "queries"),
    [
        ("東大寺とは何ですか？\n2. 大仏の高さは？", ("東大寺とは何ですか？", "大仏の高さは？")),
        ("1．「東大寺とは何ですか？」\n２．大仏の高さは？", ("東大寺とは何ですか？", "大仏の高さは？")),
        ("以下是查询：\n1、长城有多长？\n2、长城 建造", ("长城有多长？", "长城 建造")),
        ("（1）长城有多长？\n（2）长城 建造", ("长城有多长？", "长城 建造")),
        ("Вот запросы:\n1) Что такое фьорд?\n2) глубина фьорда", ("Что такое фьорд?", "глубина фьорда")),
        ("ما هو المضيق؟\n٢. عمق المضيق", ("ما هو المضيق؟", "عمق المضيق")),
        ("1. 피오르드란 무엇인가요?\n2. 피오르드 깊이", ("피오르드란 무엇인가요?", "피오르드 깊이")),
    ],
)  # fmt: skip
def test_other_scripts(answer: str, queries: tuple[str, ...]) -> None:
    parsed = parse(answer, 2)
    assert parsed.queries == queries
    assert parsed.problems == {}


@pytest.mark.parametrize(
    ("answer", "m", "queries", "problems"),
    [
        ("", 2, (), {"too_few": 2}),
        ("<think>what shall I", 2, (), {"too_few": 2}),
        ("1. one thing\n2. other thing", 3, ("one thing", "other thing"), {"too_few": 1}),
        ("1. a b\n2. c d\n3. e f", 2, ("a b", "c d"), {"too_many": 1}),
        ("1. What is it?\n2. what is  it\n3. else", 3, ("What is it?", "else"), {"duplicate": 1, "too_few": 1}),
        ("1. one thing\n2. \n3. ???\n4. other", 4, ("one thing", "other"), {"empty": 2, "too_few": 2}),
        (f"1. {'long ' * 100}\n2. short one", 2, ("short one",), {"over_long": 1, "too_few": 1}),
        ("1. one thing\n   explained here\n2. other", 2, ("one thing", "other"), {"stray_line": 1}),
        ("1. one thing\n2. other\n\nLet me know if you need more!", 2, ("one thing", "other"), {"stray_line": 1}),
        ("I'm sorry, but I can't help with that.", 2, (), {"refusal": 1, "too_few": 2}),
        ('["one thing", "other thi', 2, ("one thing",), {"broken_json": 1, "too_few": 1}),
        ('{"queries": ["one thing", "other",]}', 2, ("one thing", "other"), {"broken_json": 1}),
        ('{"queries": []}', 1, (), {"too_few": 1}),
        ('["ok", 3, null]', 1, ("ok",), {"empty": 2}),
    ],
)  # fmt: skip
def test_every_problem_is_counted(answer: str, m: int, queries: tuple[str, ...], problems: dict[str, int]) -> None:
    parsed = parse(answer, m)
    assert parsed.queries == queries
    assert parsed.problems == problems


@pytest.mark.parametrize(
    "query",
    [
        "24: the last season of the series",
        "2008 financial crisis causes",
        "3D printing materials",
        "1.5 million people evacuated in 1999",
        "What does [1] mean in a bibliography?",
        "Why is C# called C#?",
        "How are * and ** used in Python?",
        "'Tis the season meaning",
        "Who said \"I think\" and \"I am\"?",
        "A. Lincoln biography",
        "What does <li> do in HTML?",
        "a || b in C",
        "What does (①) stand for?",
    ],
)  # fmt: skip
def test_numbers_and_marks_that_belong_to_a_query_stay(query: str) -> None:
    assert parse(f"first query here\n2. {query}\n3. third query here", 3).queries[1] == query
    assert parse(query, 1).queries == (query,)


def test_inline_numbers_out_of_sequence_are_not_split() -> None:
    assert parse("What happened on 4. July 1776?", 2).queries == ("What happened on 4. July 1776?",)


WORDS = st.sampled_from(["basalt", "glacier", "copper", "when", "rivers", "7", "C++", "tea", "o'clock", "12th"])
QUESTIONS = st.lists(WORDS, min_size=3, max_size=6).map(lambda words: f"why {' '.join(words)}?")


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(QUESTIONS, min_size=2, max_size=20, unique=True))
def test_any_list_of_questions_survives_the_ways_of_writing_it(queries: list[str]) -> None:
    m = len(queries)
    answers = (
        "\n".join([queries[0], *(f"{i}. {query}" for i, query in enumerate(queries[1:], start=2))]),
        "\n".join(f"{i}) {query}" for i, query in enumerate(queries, start=1)),
        json.dumps({"queries": queries}),
    )
    for answer in answers:
        assert list(parse(answer, m).queries) == queries


@pytest.mark.slow
@given(st.text(max_size=300), st.integers(1, 20))
def test_no_text_breaks_the_parser(text: str, m: int) -> None:
    parsed = parse(text, m)
    assert len(parsed.queries) <= m
    assert len(parsed.queries) + parsed.problems.get("too_few", 0) == m
    assert all(query.strip() for query in parsed.queries)


def test_control_characters_do_not_reach_a_query() -> None:
    """They would change what a terminal shows, and a NUL ends a text for many a program."""
    parsed = parse("1. What\x00 is\x1b[31m it?\n2. Why\x07 so?", 2)
    assert parsed.queries == ("What is [31m it?", "Why so?")


@pytest.mark.parametrize(
    "parsed",
    [
        parse_after_summary("A half \ud83d summary\nQuestion: What is it?"),
        parse_task_query("Task: find \udc00 it\nQuery: What is it?"),
        parse("1. half \ud83d\n2. What is it?", 2),
        parse('{"queries": ["half \\ud83d", "What is it?"]}', 2),
    ],
)
def test_half_a_character_reaches_neither_queries_nor_notes(parsed: Parsed) -> None:
    """Before, a set could no longer be written, and a resume read the same answer from the cache again."""
    assert parsed.queries == ("What is it?",)
    "".join([*parsed.queries, *parsed.notes]).encode("utf-8")
    assert parsed.notes or parsed.problems["broken_text"] == 1


def test_json_that_no_parser_takes_is_no_reason_to_raise() -> None:
    assert parse("[" * 100_000 + "\n1. What is it?", 1).queries == ("What is it?",)
    assert parse('{"queries": ["one\ttab", "cut o', 2).queries == ("one tab",)
