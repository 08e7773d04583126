"""The reader of answers: every family of models in six variants, ends of turns, tools, and marks that are data."""

from __future__ import annotations

import json
import time

import pytest

from cdp.evaluation.judging import read_grade
from cdp.llm import reader
from cdp.llm.reader import FAMILIES, read
from cdp.synthesis.parsing import parse

LIST = "1. What is a fjord?\n2. How does ice carve rock?\n3. fjord depth Norway"
THREE = ("What is a fjord?", "How does ice carve rock?", "fjord depth Norway")
OBJECT = json.dumps({"queries": THREE})
FENCED, ARRAY = f"```json\n{OBJECT}\n```", json.dumps(THREE, indent=1)
PROSE = "The user wants queries.\nMaybe something about history? Let me think"
DRAFT = 'A draft: {"queries": ["maybe something about history", "a second draft"]}\n1. and a third\n2. draft'

# The marks as models write them, apart from the table that is tested: thought, end of it, answer, end of that.
WAYS = {
    "think": ("<think>\n", "\n</think>\n\n", "", ""),
    "think in one line": ("<think>", "</think>", "", ""),
    "think, opening in the prompt": ("", "\n</think>\n\n", "", ""),
    "think, opening in the prompt, ChatML": ("", "</think>\n", "", "<|im_end|>"),
    "think without a thought": ("<think>\n\n</think>\n\n<think>\n", "\n</think>\n", "", ""),
    "thinking": ("<thinking>", "</thinking>\n", "", ""),
    "thought": ("<thought>\n", "</thought>", "", ""),
    "marco": ("<Thought>\n", "\n</Thought>\n", "<Output>\n", "\n</Output>"),
    "grpo": ("<reasoning>\n", "\n</reasoning>\n", "<answer>\n", "\n</answer>"),
    "reflection": ("<thinking>\n", "\n<reflection>\nhm\n</reflection>\n</thinking>\n", "<output>\n", "\n</output>"),
    "scratch pad": ("<scratch_pad>\n", "\n</scratch_pad>\n", "", "<|im_end|>"),
    "scratchpad": ("<scratchpad>", "</scratchpad>\n", "", ""),
    "hunyuan": ("<think>\n", "\n</think>\n", "<answer>\n", "\n</answer>"),
    "hunyuan, cut before its end": ("<think>\n", "\n</think>\n", "<answer>\n", ""),
    "ernie": ("", "\n</think>\n\n", "<response>\n", "\n</response>\n"),
    "glm box": ("<think>", "</think>\n", "<answer><|begin_of_box|>", "<|end_of_box|></answer>"),
    "seed": ("<seed:think>\n", "\n<seed:cot_budget_reflect>9 left</seed:cot_budget_reflect>\n</seed:think>\n", "", ""),
    "longcat": ("", "</longcat_think>\n", "", ""),
    "minimax m3": ("<mm:think>", "</mm:think>", "", ""),
    "magistral": ("[THINK]", "[/THINK]", "", "</s>"),
    "kimi": ("◁think▷", "◁/think▷", "", "<|im_end|>"),
    "apertus": ("<|inner_prefix|>", "<|inner_suffix|>", "", ""),
    "plamo": ("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>", "", "<|plamo:tag|>"),
    "solar open 2": ("<|think:start|>", "<|think:end|>", "", ""),
    "solar open": ("<|think|>", "<|end|><|begin|>assistant", "<|content|>", "<|end|>"),
    "gemma 4": ("<|channel>thought\n", "<channel|>", "", "<turn|>"),
    "open webui": (
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 seconds</summary>\n',
        "\n</details>\n", "", "",
    ),
    "openthinker": ("<|begin_of_thought|>\n\n", "\n\n<|end_of_thought|>\n\n", "<|begin_of_solution|>\n\n",
                    "\n\n<|end_of_solution|>"),
    "command a": ("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>",
                  "<|END_RESPONSE|><|END_OF_TURN_TOKEN|>"),
    "harmony": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant", "<|channel|>final<|message|>",
                "<|return|>"),
    "harmony, held to JSON": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant",
                              "<|channel|>final <|constrain|>json<|message|>", ""),
    "harmony, preamble": (
        "<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>commentary<|message|>I begin.<|end|>"
        "<|start|>assistant", "<|channel|>final<|message|>", "<|return|>",
    ),
    "harmony without special tokens": ("analysis", "assistantfinal", "", ""),
    "s1": ("<|im_start|>think\n", "\n", "<|im_start|>answer\n", "<|im_end|>"),
    "granite": ("Here is my thought process: ", "\n\n", "Here is my response: ", "<|end_of_text|>"),
    "granite, quantized": ("Here's my thought process:\n", "\n", "Here is my response:\n", ""),
    "k2": ("<think_fast>\n", "\n</think_fast>\n", "", "<|im_end|>"),
    "thinking tokens": ("<|thinking_start|>", "<|thinking_end|>", "<|answer_start|>", "<|answer_end|>"),
    "thinking tokens, begin of": ("", "\n<|end_of_thinking|>\n", "", ""),
    "apriel": ("Here are my reasoning steps:\n", "\n", "[BEGIN FINAL RESPONSE]\n", "\n[END FINAL RESPONSE]\n<|end|>"),
    "apriel, opening in the prompt": ("", "\n", "[BEGIN FINAL RESPONSE]\n", ""),
}  # fmt: skip


def message(way: str, thought: str, answer: str) -> str:
    begins, ends, opens, closes = WAYS[way]
    return f"{begins}{thought}{ends}{opens}{answer}{closes}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("thought", [PROSE, DRAFT], ids=["thought", "draft"])
@pytest.mark.parametrize("answer", [LIST, OBJECT, FENCED, ARRAY], ids=["list", "object", "fenced", "array"])
def test_the_answer_and_nothing_of_the_thought(way: str, thought: str, answer: str) -> None:
    text = message(way, thought, answer)
    found = read(text)
    assert found.complete
    assert parse(text, 3).queries == THREE
    assert parse(text, 3).problems == {}
    assert "history" in found.thought


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_cut_within_its_thought_holds_none(way: str) -> None:
    for thought in (PROSE, DRAFT):
        found = read(WAYS[way][0] + thought, "length")
        assert not found.complete
        if WAYS[way][0] and way != "harmony without special tokens":  # else nothing marks it as a thought
            assert found.answer == ""


@pytest.mark.parametrize("way", WAYS)
def test_a_grade_is_read_behind_a_thought(way: str) -> None:
    for answer in ('{"reason": "yes", "grade": "2"}', "Grade: 2", '```json\n{"grade": 2, "reason": ""}\n```'):
        grade = read_grade(read(message(way, 'perhaps {"grade": 0} or grade: 1', answer)).answer)
        assert grade is not None
        assert grade[0] == 2


def test_the_table_has_a_source_in_each_row_and_no_row_twice() -> None:
    assert len(FAMILIES) >= 24
    assert len({(row.opening, row.closing, row.answer) for row in FAMILIES}) == len(FAMILIES)
    assert all(row.models and row.source and (row.opening or row.answer) for row in FAMILIES)
    assert {row.found for row in FAMILIES} == {"", "splits", "phrase"}


@pytest.mark.parametrize("end", reader.ENDS)
def test_no_end_mark_stays_at_a_query(end: str) -> None:
    for text in (f"{LIST}{end}", f"{LIST} {end}\n{end}", f"{OBJECT}{end}\n", f"```\n{LIST}\n```{end}"):
        assert parse(text, 3).queries == THREE
        assert read(text, "").complete


@pytest.mark.parametrize(
    "behind",
    [
        "<|im_end|>\n<|im_start|>user\nMore.<|im_end|>\n<|im_start|>assistant\n1. Something else?",
        "<end_of_turn>\n<start_of_turn>user\n1. Something else?",
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n1. Something else?",
        "</s>[INST] More [/INST] 1. Something else?",
        "<|im_end|>\nI hope that this helps.",
    ],
)
def test_a_turn_that_the_model_ran_on_with_is_not_its_answer(behind: str) -> None:
    assert parse(LIST + behind, 3).queries == THREE
    assert parse(LIST + behind, 3).problems == {}


def test_end_marks_between_the_items_go_alone() -> None:
    assert parse(LIST.replace("\n", "</s>\n"), 3).queries == THREE


DATA = (
    "what does the <think> tag do in HTML",
    "when is </think> written by a model",
    "is <|im_end|> one token or six in ChatML",
    "how does [THINK] differ from <thinking>",
    "gpt-oss <|channel|>final<|message|> and <|return|> explained",
    "is <answer> an HTML element?",
    "text that is <s>struck out</s>",
)


@pytest.mark.parametrize("thought", ["", "<think>\nAbout <think> and </think> in HTML.\n</think>\n\n"])
def test_marks_that_an_answer_is_about_stay_in_it(thought: str) -> None:
    numbered = "\n".join(f"{i}. {query}" for i, query in enumerate(DATA, 1))
    for answer in (
        numbered,
        json.dumps({"queries": DATA}),
        json.dumps(DATA, indent=2),
        f"```json\n{json.dumps(DATA)}\n```",
    ):
        assert parse(thought + answer, len(DATA)).queries == DATA
    assert parse(f"{thought}1. first\n2. where to put </think>\n3. third", 3).queries == (
        "first", "where to put </think>", "third",
    )  # fmt: skip
    cut = f'{thought}{{"queries": ["{DATA[1]}", "and when is </think>'
    assert parse(cut, 3).queries == (DATA[1],)


def test_json_about_a_whole_dialogue_is_read_as_it_stands() -> None:
    about = ("<|end|><|start|>assistant<|channel|>final<|message|> in gpt-oss", "</think>\n and what follows", "c")
    for answer in (json.dumps(about), json.dumps({"queries": about}), f"```json\n{json.dumps(about)}\n```"):
        assert parse(answer, 3).queries == tuple(" ".join(query.split()) for query in about)


def test_thoughts_may_be_nested_and_several_and_stand_between_items() -> None:
    for text in (
        f"<think>\na\n<think>\nb\n1. draft\n</think>\nc\n</think>\n{LIST}",
        f"<think>a</think>\n<think>b</think>{LIST}",
        f"<seed:think>a</seed:think><seed:think>b</seed:think>{LIST}",
        LIST.replace("\n2.", "\n<think>\nnow the second\n1. draft\n</think>\n2."),
    ):
        assert parse(text, 3).queries == THREE
    cut = read(f"{LIST}\n<think>\nis that", "length")
    assert (parse(cut.answer, 3).queries, cut.complete) == (THREE, False)


TOOLS = {
    "hermes": '<tool_call>\n{"name": "q", "arguments": %}\n</tool_call>',
    "mistral": '[TOOL_CALLS][{"name": "q", "arguments": %}]',
    "mistral, new": "[TOOL_CALLS]q[ARGS]%",
    "llama": '<|python_tag|>{"name": "q", "parameters": %}<|eom_id|>',
    "command": '<|START_ACTION|>[{"tool_name": "q", "parameters": %}]<|END_ACTION|>',
    "harmony": "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.q "
    "<|constrain|>json<|message|>%<|call|>",
    "bare": '{"name": "q", "arguments": %}',
    "arguments in a text": '{"name": "q", "arguments": TEXT}',
}


@pytest.mark.parametrize("name", TOOLS)
def test_the_arguments_of_a_call_are_the_answer(name: str) -> None:
    text = TOOLS[name].replace("%", OBJECT).replace("TEXT", json.dumps(OBJECT))
    for thought in ("", "<think>\nDraft: [1]\n</think>\n"):
        assert parse(thought + text, 3).queries == THREE


@pytest.mark.parametrize(
    ("reason", "text", "complete"),
    [
        ("stop", "no mark at its end", True),
        ("STOP", "x", True),
        ("end_turn", "x", True),
        ("eos", "x", True),
        ("length", "A sentence.", False),
        ("error", "A sentence.", False),
        ("content_filter", "A sentence.", False),
        ("network_error", "A sentence.", False),
        ("", "A sentence.", True),
        ("", "what does a sourdo", False),
        ("", "what does a sourdo<|im_end|>", True),
        ("", '{"queries": ["what is it"]}', True),
    ],
)  # fmt: skip
def test_what_counts_as_ended(reason: str, text: str, complete: bool) -> None:
    assert read(text, reason).complete is complete


RUNS = (
    "<think>\n", "<think>", "</think>", "<think></think>", "\n<think>", "\n<think>a</think>b", "1. </think>\n", "</s>",
    "<|channel|>", "<|im_end|>", "<|im_end|>\n", "<answer>", "analysis", "```\n", "[", "{", "<|channel|>final", " ",
    "assistantfinal", "<details", "<|im_start|>assistant", "\n",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("piece", RUNS)
def test_time_grows_with_the_length(piece: str) -> None:
    def seconds(n: int) -> float:
        began = time.process_time()
        for before in ("", "<think>", "1. a?\n", "analysis", "x\n"):
            for behind in ("", "!"):
                read(before + piece * (n // len(piece)) + behind)
        return time.process_time() - began

    short = max(seconds(5_000) for _ in range(2))
    assert seconds(40_000) < 30 * short + 0.05
