"""Parsing endpoints' responses: checks, keys cut out of fields, token counts, log-probabilities, prompts a server cut.

The schema requires a first choice with text and nothing else: implausible metadata (model, finish reason, token counts)
must not reject an answer that was paid for. JSON is parsed by pydantic, which rejects invalid UTF-8 and endless nesting
before anything is stored; numbers without end and lone surrogates are taken out before.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cdp.base.errors import ProviderError
from cdp.base.redaction import clean
from cdp.base.text import counted, one_line

if TYPE_CHECKING:
    from cdp.llm.reader import Reading

# Of one request: a larger count is a mistake and would use up any budget.
MAX_TOKENS = 10_000_000
# An estimate of tokens is 15% off for prose, for tables and code more.
LONG_PROMPT, COUNTED = 1000, 0.6
SHOWN = 160
LONGEST_LOGPROB = 1e6
ONE_EACH = "Some models make one vector of all texts of a request: set batch_size=1."
KEPT_RAW = 2000  # characters of an unusable answer that are kept with its document's failure

# The parser refuses numbers of thousands of digits, and the answer with them. None of the fields that are read has one.
_ENDLESS = re.compile(rb"(?<=[:,\[\s])-?\d{400,}(?=[\s,\]}])")

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

REASONING_ALONE = "Check the server's reasoning parser: it may put whole answers into the thought."


@dataclass(frozen=True)
class Usage:
    """The usage of one or several requests.

    Tokens are the endpoint's counts, estimates for ``estimated`` requests. ``requests`` were answered; ``unanswered``
    ones were sent and lost (connection, timeout, killed process): they may be charged, so their usual length counts.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    estimated: int = 0
    unanswered: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) - getattr(other, name) for name in self.__dataclass_fields__))

    def lacks(self, usual: Usage) -> bool:
        """Return True if an endpoint counted far fewer tokens of a prompt than were sent: it may cut it silently."""
        known = self.requests > 0 and not self.estimated
        return known and usual.input_tokens >= LONG_PROMPT and self.input_tokens < COUNTED * usual.input_tokens

    def to_dict(self) -> dict[str, int]:
        """Return tokens and requests, and the other counts that are not 0."""
        always = ("input_tokens", "output_tokens", "requests")
        return {n: value for n in self.__dataclass_fields__ if (value := getattr(self, n)) or n in always}


def prompts_cut(n: int) -> str:
    """Return a warning of ``n`` prompts that lack tokens; empty for none."""
    if not n:
        return ""
    prompts = f"{counted(n, 'prompt')}: the endpoint counted far fewer tokens than were sent, and may cut silently."
    return f"{prompts} Raise its context length (Ollama: OLLAMA_CONTEXT_LENGTH), or lower max_document_tokens."


@dataclass(frozen=True)
class Answer:
    """A generator's answer for one document: a raw ``text`` to be parsed, or the ``queries`` themselves.

    ``text`` stays as it came: ``reading`` is what today's reader makes of it. ``finish_reason`` is the endpoint's
    ("length": truncated; empty: none given). ``logprob`` is the mean natural log-probability of its tokens, None if
    unknown.
    """

    text: str = ""
    queries: tuple[str, ...] | None = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    finish_reason: str = "stop"
    logprob: float | None = None

    @property
    def reading(self) -> Reading:
        """The text without thought, wrapping and end marks."""
        from cdp.llm.reader import read  # its patterns take 14 ms, where a command starts that reads no answer

        return read(self.text, self.finish_reason)

    @property
    def ends_there_again(self) -> bool:
        """Return True if the same request would be cut again: at its longest answer, or by a filter."""
        from cdp.llm.reader import FILTER, LENGTH

        return self.finish_reason.lower() in LENGTH | FILTER


@dataclass(frozen=True)
class Embeddings:
    """The answer to one request for embeddings: ``vectors`` (n, dim) float32 in the order of the texts.

    A row is finite, or NaN throughout where the server gave no vector for a text.
    """

    vectors: np.ndarray
    usage: Usage


class RequestError(ProviderError):
    """One request failed (refused content, too long, retries exhausted); others may succeed.

    ``exhausted``: the endpoint kept failing, the request may be fine. ``usage`` may have been charged; ``raw`` is the
    beginning of the response; ``status`` is 0 if there was none.
    """

    def __init__(
        self, message: str, *, hint: str = "", exhausted: bool = False, usage: Usage | None = None, raw: str = "",
        status: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(message, hint=hint)
        self.status = status
        self.exhausted = exhausted
        self.usage = usage or Usage()
        self.raw = raw


class Cancelled(Exception):  # noqa: N818 — not an error: the run was asked to stop
    """A request was cancelled because the run stops. ``usage``: sent requests without an answer, perhaps charged."""

    def __init__(self, usage: Usage | None = None) -> None:
        super().__init__()
        self.usage = usage or Usage()


class Malformed(ValueError):  # noqa: N818 — reads better where it is raised
    """An answer that cannot be used. ``own``: because of this document, not of the endpoint."""

    def __init__(self, reason: str, *, own: bool = False, hint: str = "") -> None:
        super().__init__(reason)
        self.own = own
        self.hint = hint


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, defer_build=True)


class _Part(_Strict):
    type: str = "text"
    text: str | None = None
    thinking: Any = None


class _Message(_Strict):
    model_config = ConfigDict(strict=True, extra="allow", defer_build=True)
    content: str | list[_Part] | None = None
    refusal: Any = None
    tool_calls: Any = None


class _Choice(_Strict):
    message: _Message
    finish_reason: Any = None
    logprobs: Any = None


class _Completion(_Strict):
    choices: list[_Choice] = Field(min_length=1)
    model: Any = None
    usage: Any = None


class _Vector(_Strict):
    embedding: list[float | None] | str | None = None
    index: int | None = None

    @property
    def values(self) -> np.ndarray:
        """Return the vector, from a list or from base64; empty for one that cannot be used."""
        listed = self.embedding or ()
        if isinstance(listed, str):
            try:
                row = np.frombuffer(base64.b64decode(listed, validate=True), "<f4").astype(np.float32)
            except ValueError:
                raise Malformed("a vector in it is a text that is not base64") from None
        else:
            with np.errstate(over="ignore"):
                row = np.array(listed, np.float32)  # null becomes NaN
        return row if np.isfinite(row).all() else row[:0]


class _Vectors(_Strict):
    data: list[_Vector]
    usage: Any = None


class _Paid(_Strict):
    """The usage of an answer that does not fit."""

    usage: Any = None


class _Response(_Strict):
    status_code: int = 200
    body: Any = None


class _BatchLine(_Strict):
    custom_id: str
    error: Any = None
    response: _Response | None = None


def read_completion(data: bytes, expected: Usage) -> Answer:
    """Parse the body of a response; ``expected`` replaces implausible token counts. Raises Malformed."""
    return _answer(_fitting(_Completion, data), expected)


def read_embeddings(data: bytes, n: int, expected: Usage) -> Embeddings:
    """Parse the body of a response to ``n`` texts; ``expected`` replaces an implausible token count.

    The row of an empty, missing or not finite vector is NaN. Raises Malformed unless there is one vector per text and
    all are of one dimension.
    """
    read = _fitting(_Vectors, data)
    order = [vector.index or 0 for vector in read.data]  # Gemini's compatible address leaves out an index of 0
    if not any(order):  # where none is told, or all are 0
        order = list(range(len(order)))
    if sorted(order) != list(range(n)):
        raise Malformed(f"it does not hold one vector for each of {n} texts, but {len(order)}", hint=ONE_EACH)

    rows = [vector.values for vector in read.data]
    widths = sorted(set(map(len, rows)) - {0})
    if len(widths) > 1:
        raise Malformed(f"its vectors have {widths[0]} to {widths[-1]} dimensions")

    values = np.full((n, max(widths, default=0)), np.nan, np.float32)
    for index, row in zip(order, rows, strict=True):
        if len(row):
            values[index] = row

    tokens = None
    if isinstance(read.usage, dict):
        tokens = _count(read.usage.get("prompt_tokens"))

    return Embeddings(values, Usage(tokens or expected.input_tokens, 0, 1, int(not tokens)))


def read_batch_line(data: bytes, ours: re.Pattern[str]) -> tuple[str, Answer]:
    """Parse a line of a Batch API output: its ``custom_id``, which must match ``ours``, and the answer.

    Raises Malformed.
    """
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
    """Return the usage of an answer that cannot be used; ``expected`` if it has none."""
    try:
        reported = _Paid.model_validate_json(_readable(data)).usage
    except ValidationError:
        reported = None
    return _usage(reported, expected)


def _readable(data: bytes) -> bytes:
    """Return an answer's JSON without what the parser refuses, which may stand in a field that nothing reads."""
    data = _ENDLESS.sub(b"null", data)
    if _SURROGATE.search(data) is None:
        return data
    with suppress(ValueError, RecursionError):  # half of a surrogate pair is left out
        return json.dumps(json.loads(data), ensure_ascii=False).encode("utf-8", "ignore")
    return data


def _fitting(schema: type[Any], value: Any) -> Any:
    """Validate ``value`` (JSON bytes, or parsed JSON) by a schema; Malformed with its first problem."""
    try:
        if isinstance(value, bytes):
            return schema.model_validate_json(_readable(value))
        return schema.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        if problem["type"] == "json_invalid":
            what = problem["msg"].removeprefix("Invalid JSON: ")
            raise Malformed(f"it is not JSON ({_short(what)})") from None
        where = ".".join(str(part) for part in problem["loc"]) or "the answer"
        raise Malformed(f"it does not fit the protocol ({_short(where)}: {_short(problem['msg'])})") from None


def _answer(completion: _Completion, expected: Usage) -> Answer:
    from cdp.llm.reader import LENGTH, text_and_thought

    choice = completion.choices[0]
    reason = choice.finish_reason if isinstance(choice.finish_reason, str) else ""
    text, thought = text_and_thought(choice.message.model_dump())
    if text is None:
        raise _no_text(choice.message, thought, reason, cut=reason.lower() in LENGTH)

    model = completion.model if isinstance(completion.model, str) else ""
    usage, mean = _usage(completion.usage, expected, text), _mean_logprob(choice.logprobs)

    return Answer(text, usage=usage, model=clean(model)[:SHOWN], finish_reason=clean(reason)[:SHOWN], logprob=mean)


def _no_text(message: _Message, thought: str, reason: str, *, cut: bool) -> Malformed:
    """Return why a message without a text cannot be used."""
    moved = (message.model_extra or {}).get("provider_specific_fields")  # LiteLLM
    refusal = message.refusal or (moved.get("refusal") if isinstance(moved, dict) else None)
    if refusal:
        return Malformed(f"the model refused: {_short(refusal)}", own=True)
    if message.tool_calls:
        return Malformed("the model asked to call a tool instead of writing queries", own=True)

    held, hint = ("a thought and no answer", REASONING_ALONE) if thought else ("no text", "")
    if cut:
        hint = "Raise max_output_tokens."
    return Malformed(f"it holds {held} (it ended with {_short(reason)!r})", own=cut, hint=hint)


def _mean_logprob(logprobs: Any) -> float | None:
    """Return the mean natural log-probability of the tokens, None if any is missing."""
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list) or not tokens:
        return None

    numbers = []
    for token in tokens:
        number = plausible(token.get("logprob")) if isinstance(token, dict) else None
        if number is None:
            return None
        numbers.append(number)

    return sum(numbers) / len(numbers)


def plausible(value: Any) -> float | None:
    """Return a log-probability as a number, None for anything else that JSON can hold: 400 digits, NaN, a text."""
    return float(value) if type(value) in (int, float) and abs(value) <= LONGEST_LOGPROB else None


def _usage(reported: Any, expected: Usage, text: str = "") -> Usage:
    """Return one request's usage: plausible counts, the expected ones in place of the others.

    Zeros are none: LiteLLM has them where the model behind it counts nothing, and a budget would never end.
    """
    counts = reported if isinstance(reported, dict) else {}
    read, written = _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))
    if not written and (text or not read):
        written = None
    return Usage(
        read or expected.input_tokens,
        expected.output_tokens if written is None else written,
        1,
        estimated=int(not read or written is None),
    )


def _count(value: Any) -> int | None:
    """Return a token count, None for anything else: a text, a fraction, a negative or an impossible number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TOKENS:
        return None
    return int(value) if value == int(value) else None


def _short(value: Any) -> str:
    """Return the beginning of a text without keys, on one line."""
    return one_line(clean(str(value))[: 2 * SHOWN])[:SHOWN].rstrip(".")
