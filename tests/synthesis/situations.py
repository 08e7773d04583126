"""Situations of public reports: what a server answers, where that is described, and what is right.

Each asks for three queries by the method ``diverse``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

THREE = ("What is a fjord?", "How does ice carve rock?", "fjord depth Norway")
LIST = "\n".join(f"{i}. {query}" for i, query in enumerate(THREE, 1))
OBJECT = json.dumps({"queries": THREE})
THOUGHT = 'Maybe something about history.\n1. a draft\n2. {"queries": ["another draft"]}'


@dataclass(frozen=True)
class Situation:
    """``changes`` are the fields of the answer, ``queries`` and ``problems`` what comes of them, after ``requests``."""

    source: str
    changes: Mapping[str, Any]
    queries: tuple[str, ...] = THREE
    problems: Mapping[str, int] = field(default_factory=dict)
    requests: int = 1
    error: str = ""


def _message(content: Any, **fields: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content, **fields}}


def _call(arguments: Any) -> list[dict[str, Any]]:
    return [{"id": "1", "type": "function", "function": {"name": "json_tool_call", "arguments": arguments}}]


SITUATIONS = {
    "reasoning_content": Situation(
        "DeepSeek API docs, reasoning model; vLLM, reasoning outputs", _message(LIST, reasoning_content=THOUGHT)
    ),
    "reasoning": Situation("OpenRouter, reasoning tokens; vllm-ascend #10940", _message(OBJECT, reasoning=THOUGHT)),
    "thought in parts": Situation(
        "Mistral docs, Magistral",
        _message([
            {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}, {"type": "text", "text": LIST},
        ]),
    ),
    "a refusal that was moved": Situation(
        "seen: LiteLLM 1.106.12",
        _message(None, provider_specific_fields={"refusal": "I cannot help with that."}), (),
        error="the model refused: I cannot help with that",
    ),
    "zeros for counts": Situation(
        "seen: LiteLLM 1.106.12, usage: null behind it",
        {**_message(LIST), "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}},
    ),
    "thought alone": Situation(
        "vLLM #17609: with thinking off the parser puts the answer into the thought",
        _message(None, reasoning_content=LIST), (), error="holds a thought and no answer",
    ),
    "thought alone, cut": Situation(
        "vLLM, reasoning outputs: max_tokens counts the thought",
        {**_message("", reasoning=THOUGHT), "finish_reason": "length"}, (), error="holds a thought and no answer",
    ),
    "JSON as a tool's call": Situation("LiteLLM, json_tool_call", _message(None, tool_calls=_call(OBJECT))),
    "arguments as an object": Situation("Ollama, tool calling", _message("", tool_calls=_call(json.loads(OBJECT)))),
    "channels": Situation(
        "gpt-oss at llama.cpp without a template; harmony docs",
        _message(f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{LIST}"),
    ),
    "thought, opening in the prompt": Situation(
        "DeepSeek-R1's chat template since February 2025", _message(f"{THOUGHT}\n</think>\n\n{OBJECT}")
    ),
    "thought, opening in the prompt, cut": Situation(
        "the same, at max_tokens",
        {**_message("Okay, the user wants\nthree queries\nabout a fjord"), "finish_reason": "length"},
        (), {"cut_off": 1, "too_few": 3},
    ),
    "bare lines behind a thought, cut": Situation(
        "the same, the thought closed",
        {**_message("\n".join([THOUGHT, "</think>", *THREE[:2], "fjord dep"])), "finish_reason": "length"},
        THREE[:2], {"cut_off": 1, "too_few": 1},
    ),
    "end mark": Situation("LM Studio and llama.cpp with another template", _message(f"{LIST}<|im_end|>")),
    "cut at the limit": Situation(
        "OpenAI docs, finish_reason", {**_message(LIST[:-6]), "finish_reason": "length"}, THREE[:2],
        {"cut_off": 1, "too_few": 1},
    ),
    "cut JSON": Situation(
        "OpenAI docs, structured outputs", {**_message(OBJECT[:-10]), "finish_reason": "length"}, THREE[:2],
        {"cut_off": 1, "too_few": 1, "broken_json": 1},
    ),
    "cut by an error": Situation(
        "OpenRouter docs, errors: finish_reason error", {**_message(LIST[:-6]), "finish_reason": "error"}, THREE[:2],
        {"cut_off": 1, "too_few": 1}, 6, error="failed within its answer",
    ),
    "cut by a filter": Situation(
        "Azure docs, content filtering", {**_message(LIST[:-6]), "finish_reason": "content_filter"}, THREE[:2],
        {"cut_off": 1, "too_few": 1},
    ),
    "white space up to the limit": Situation(
        "OpenAI docs, JSON mode", {**_message(OBJECT + " \n" * 50), "finish_reason": "length"}, THREE, {"cut_off": 1}
    ),
    "no finish_reason": Situation(
        "proxies of Gemini", {**_message(LIST[: LIST.index("3.")] + "3. Is it deep?"), "finish_reason": None},
        (*THREE[:2], "Is it deep?"),
    ),
    "no finish_reason, cut": Situation(
        "the same", {**_message(LIST[:-6]), "finish_reason": None}, THREE[:2], {"cut_off": 1, "too_few": 1}, 2
    ),
}  # fmt: skip
