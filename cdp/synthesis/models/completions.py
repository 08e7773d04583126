"""What an endpoint sends back, read by a schema: an ``Answer``, or a sentence that says why it is none.

The schema asks for what the work needs, a first choice whose message holds text, and for nothing else. What only
describes an answer (model, reason of its end, token counts) is used where it can be believed and never makes an answer
useless that was paid for. JSON is read by pydantic: half a character (a lone surrogate), bytes that are no UTF-8 and
lists within lists without end are refused there, before anything of them is stored.
"""

from __future__ import annotations

import math
import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cdp.synthesis.generators.base import Answer, Usage

MOST_TOKENS = 10_000_000
"""Of one request. No model reads or writes as many; a larger count is a mistake and would use up any budget."""

SHOWN = 160
KEPT_RAW = 2000
"""Characters of an unusable answer that are kept with its document's failure."""


class Malformed(ValueError):  # noqa: N818 — reads better where it is raised
    """An answer that came and cannot be used. ``own`` is whether the model meant it: another document may do better."""

    def __init__(self, reason: str, *, own: bool = False, hint: str = "") -> None:
        super().__init__(reason)
        self.own = own
        self.hint = hint


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)
    type: str = "text"
    text: str | None = None


class _Message(BaseModel):
    model_config = ConfigDict(strict=True)
    content: str | list[_Part] | None = None
    refusal: Any = None
    tool_calls: Any = None


class _Choice(BaseModel):
    model_config = ConfigDict(strict=True)
    message: _Message
    finish_reason: Any = None
    logprobs: Any = None


class _Completion(BaseModel):
    model_config = ConfigDict(strict=True)
    choices: list[_Choice] = Field(min_length=1)
    model: Any = None
    usage: Any = None


class _Paid(BaseModel):
    """Of an answer that does not fit, what it cost."""

    model_config = ConfigDict(strict=True)
    usage: Any = None


class _Response(BaseModel):
    model_config = ConfigDict(strict=True)
    status_code: int = 200
    body: Any = None


class _BatchLine(BaseModel):
    model_config = ConfigDict(strict=True)
    custom_id: str
    error: Any = None
    response: _Response | None = None


def read_completion(data: bytes, expected: Usage) -> Answer:
    """The answer in the body of a response; ``expected`` stands for token counts that it does not tell. Malformed."""
    return _answer(_fitting(_Completion, data), expected)


def read_batch_line(data: bytes, ours: re.Pattern[str]) -> tuple[str, Answer]:
    """The ``custom_id`` (by the pattern of ``ours``) and the answer of a line of a Batch API output file. Malformed."""
    line = _fitting(_BatchLine, data)
    if not ours.fullmatch(line.custom_id):
        raise Malformed(f"{line.custom_id[:80]!r} is not one of our requests")
    if not isinstance(line.error, dict | str | None):
        raise Malformed("it does not fit the protocol (error: neither a text nor an object)")
    if line.error:
        words = line.error.get("message") if isinstance(line.error, dict) else line.error
        raise Malformed(f"the request failed ({_short(words)})")
    if line.response is None:
        raise Malformed("there is no response in it")
    if line.response.status_code != 200:
        raise Malformed(f"the request failed with status {line.response.status_code}")
    return line.custom_id, _answer(_fitting(_Completion, line.response.body), Usage(requests=1))


def paid_for(data: bytes, expected: Usage) -> Usage:
    """What an answer that cannot be used has cost, as it says itself; ``expected`` where it does not."""
    try:
        reported = _Paid.model_validate_json(data).usage
    except ValidationError:
        reported = None
    return _usage(reported, expected)


def _fitting(schema: type[Any], value: Any) -> Any:
    """``value`` (JSON as bytes, or what was in JSON already) by a schema; Malformed with its first problem."""
    try:
        return schema.model_validate_json(value) if isinstance(value, bytes) else schema.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        if problem["type"] == "json_invalid":
            what = problem["msg"].removeprefix("Invalid JSON: ")
            raise Malformed(f"it is not JSON ({_short(what)})") from None
        where = ".".join(str(part) for part in problem["loc"]) or "the answer"
        raise Malformed(f"it does not fit the protocol ({_short(where)}: {_short(problem['msg'])})") from None


def _answer(completion: _Completion, expected: Usage) -> Answer:
    choice = completion.choices[0]
    message = choice.message
    reason = choice.finish_reason if isinstance(choice.finish_reason, str) and choice.finish_reason else "stop"
    text = message.content
    if isinstance(text, list):  # some endpoints send the text in parts, as images and text are sent to them
        parts = [part.text for part in text if part.type == "text" and part.text is not None]
        text = "".join(parts) if parts else None
    if text is None:
        if message.refusal:
            raise Malformed(f"the model refused: {_short(message.refusal)}", own=True)
        if message.tool_calls:
            raise Malformed("the model asked to call a tool instead of writing queries", own=True)
        hint = "Raise max_output_tokens." if reason == "length" else ""
        raise Malformed(f"it holds no text (it ended with {_short(reason)!r})", own=reason == "length", hint=hint)
    model = completion.model if isinstance(completion.model, str) else ""
    usage, mean = _usage(completion.usage, expected), _mean_logprob(choice.logprobs)
    return Answer(text, usage=usage, model=model[:SHOWN], finish_reason=reason[:SHOWN], logprob=mean)


def _mean_logprob(logprobs: Any) -> float | None:
    """The mean natural log-probability of the tokens, as the chat protocol tells them; None where it does not."""
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list) or not tokens:
        return None
    values = [token.get("logprob") if isinstance(token, dict) else None for token in tokens]
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v)]
    return sum(numbers) / len(numbers) if len(numbers) == len(values) else None


def _usage(reported: Any, expected: Usage) -> Usage:
    """One request's tokens: the counts that can be believed, the expected ones in place of the others."""
    counts = reported if isinstance(reported, dict) else {}
    read, written = _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))
    return Usage(
        expected.input_tokens if read is None else read,
        expected.output_tokens if written is None else written,
        1,
        estimated=int(read is None or written is None),
    )


def _count(value: Any) -> int | None:
    """A token count, or None for what is none: a text, a fraction, less than nothing, more than any model takes."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def _short(value: Any) -> str:
    """Someone else's words on one line, without characters that no line may hold."""
    text = "".join(character if character.isprintable() else " " for character in str(value)[: 2 * SHOWN])
    return " ".join(text.split())[:SHOWN].rstrip(".")
