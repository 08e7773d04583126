"""Refusals: an error's words in any shape, also inside HTTP 200; pauses ("try again in 20 s"); what is not taken, kept.

``read_refusal`` is a pure function of status, headers and body. Servers differ in the shape of an error, in the status
(some send one inside HTTP 200) and in where they say how long to wait; each rule names those that need it, and
``tests/endpoint_situations.py`` holds a body of each. ``Learnt`` keeps what one model at one address does not take.
"""

from __future__ import annotations

import html
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from cdp.base.records import Count, fields, whole
from cdp.base.text import one_line
from cdp.base.workspace import write_json

LONGEST = 64 * 1024  # bytes of a body that are read: refusals are short
ECHOED = 4 * 2**20  # but FastAPI's hold all that was sent
LEAVES = 100  # values of a body that are looked at
SEARCHED = (
    4000  # characters; the words themselves are whole, so that a key in them is cut out before they are shortened
)
WAIT_S = 86_400.0  # a longer pause is a mistake

# Fields with words. OpenAI, vLLM, llama.cpp, Google: error.message; LM Studio, Ollama: error, a text; SiliconFlow, TEI,
# vLLM before 0.10: message; FastAPI: detail, a text or a list of {loc, msg}; OpenRouter: the provider's own in raw.
WORDS = ("error", "message", "detail", "msg", "raw", "error_msg", "error_description")
CODES = ("code", "type", "status", "error_type")
# Around the words: LiteLLM's error and its note on the model group; Python's files (a traceback keeps its last line).
_WRAPPED = re.compile(r"litellm\.\w{1,60}: (?:\w{1,60}: )?(?:\w{1,60}Exception - )?|\w{1,60}Exception - ")
_BEHIND = re.compile(
    r"Traceback \(most recent call last\):.*\n(?=\S)|(?:LiteLLM: model group |File \"[^\"\n]{1,400}\", line \d).*",
    re.DOTALL,
)
# Status of an error inside HTTP 200 that has a name instead of a number.
NAMED = {
    r"insufficient_quota|rate.?limit|resource_exhausted|too many requests": 429, r"overloaded|unavailable": 503,
    r"timed? ?out": 504, r"server_error|internal error": 500, r"invalid_api_key|authentication": 401,
}  # fmt: skip

# Parameters that a model may refuse, with their replacement.
REPLACEMENTS: dict[str, str | None] = {
    "max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens",
    **dict.fromkeys(("temperature", "top_p", "logprobs", "encoding_format", "dimensions", "seed", "stop", "n")),
}  # fmt: skip
_NAMES = re.compile(  # some are words of any sentence: these only in quotes or after a mark
    rf"(?<!\w)(?:{'|'.join(n for n in REPLACEMENTS if n not in ('seed', 'stop', 'n'))})(?!\w)"
    r"|(?<=['\"`.(])(?:seed|stop|n)(?=['\"`):,.\s])|(?<=: )(?:seed|stop|n)$"
)
SCHEMA, SCHEMA_KINDS = "response_format", ("json_schema", "json_object")
_SCHEMA = re.compile(r"response[_ ]format|json_schema|json_object|json mode|guided|structured output|parse grammar")
_UNTAKEN = re.compile(
    r"un(?:supported|known|recogni[sz]ed|expected|available)|deprecated|no longer|extra inputs?|extra_forbidden"
    r"|(?:not|n't|cannot be) (?:\w+ )?(?:support|permit|allow|accept|used|available)|only .{0,40}\bsupported"
    r"|literal_error|input should be '"  # pydantic, of a value that is none of a list
)
# What every request would be refused for, with another status than servers have for it. Gemini speaks of a current
# quota, too, where it means a minute.
OF_EVERY = {
    "credit": re.compile(r"insufficient_quota|^(?!.*resource_exhausted).*exceeded your current quota"),
    "key": re.compile(r"no_db_connection|no connected db"),  # LiteLLM looks an unknown one up
    "model": re.compile(  # LiteLLM; transformers serve; DeepSeek; OpenRouter
        r"invalid model name passed|is pinned to '.*requested '|model[ _]not[ _](?:exist|found)|not a valid model id"
    ),
}
# A text that is too long, then too many texts in a request; with the limit. llama.cpp calls tokens a batch size.
LIMITS = {
    "tokens": re.compile(  # llama.cpp; TEI; OpenAI, vLLM; Ollama …
        r"too large to process.*?batch size: (\d+)|less than (\d+) tokens|maximum context length (?:is|of) (\d+)"
        r"|context (?:length|size|window)|too many tokens|input is too long"
    ),
    "texts": re.compile(  # DashScope, Voyage; TEI; Gemini, Cohere; OpenAI; without a number
        r"batch size.*?(?:larger than|limit is) (\d+)|maximum allowed batch size (\d+)"
        r"|at most (\d+) (?:requests|texts|inputs|items)|array.*?maximum length (\d+)|batch size(?!.*\d)"
    ),
}

# OpenAI's and Groq's "try again in 1m3.2s", Azure's "retry after 26 seconds", Google's "37s".
_WAIT = re.compile(
    r"(?:(?:again|retry) (?:in|after) |^)(?:(\d{1,5}) ?h(?:ours?)?(?![a-z]) ?)?"
    r"(?:(\d{1,5}) ?m(?:in(?:ute)?s?)?(?![a-z]) ?)?"
    r"(?:(\d{1,9}(?:\.\d+)?) ?(ms|milliseconds?|s|sec(?:ond)?s?)(?!\w))?",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<(?:title|h1)[^>]*>([^<]*)", re.IGNORECASE)
_PAGE = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)


@dataclass(frozen=True)
class Refusal:
    """What a server answered instead of an answer.

    ``status`` is that of the error, also inside HTTP 200. ``refuses`` is what it does not take: a parameter's name,
    "texts" (too many in a request) or "tokens" (a text is too long), with the ``limit`` if it was told; "credit", "key"
    or "model" where every request is refused. ``retry_after`` is in seconds.
    """

    status: int
    words: str
    code: str = ""
    refuses: str = ""
    limit: int | None = None
    retry_after: float | None = None


def read_refusal(status: int, headers: Mapping[str, str], body: bytes, now: float = 0.0) -> Refusal | None:
    """Return the refusal in a response; None for HTTP 200 without an error in its body. ``now`` is a Unix time.

    A redirect that was not followed is a refusal, too.
    """
    inside = status < 300
    # One that is too long for an error inside HTTP 200 is an answer.
    value = None if inside and len(body) > LONGEST else _parsed(body[:ECHOED].decode("utf-8", "replace"))
    leaves = list(islice(_leaves(_inside(value) if inside else value), LEAVES))

    words = one_line(": ".join(dict.fromkeys(leaf for name, leaf in leaves if name in WORDS)))
    if inside and not words:
        return None

    words = words or _words_beside(body)
    code = " ".join(leaf for name, leaf in leaves if name in CODES)[:200]
    complaint = f"{code} {words}".lower()[:SEARCHED]
    if inside:
        status = _status_inside(code, complaint)
    if not words:
        words = HTTPStatus(status).phrase if status in set(HTTPStatus) else "no words"

    first = dict(reversed(leaves))  # of each name
    pause = _pause(headers, first.get("retryDelay", words)[:SEARCHED], now)  # Google's, "37s"
    every = _of_every(status, complaint)
    if every and not pause:
        return Refusal(status, words, code, every, None, pause)

    return Refusal(status, words, code, *_refused(status, first.get("param", ""), complaint), pause)


def _words_beside(body: bytes) -> str:
    """Return the words of a body without a known field: a page's title or a plain text; empty for JSON."""
    text = body[:LONGEST].decode("utf-8", "replace")
    if title := page_title(body):
        return title
    return "" if text.strip()[:1] in ("{", "[") else one_line(_BEHIND.sub("", text))


def _status_inside(code: str, complaint: str) -> int:
    """Return the status of an error inside HTTP 200: as a number among its codes, else by its name."""
    for number in code.split():
        if re.fullmatch(r"[45]\d\d", number):
            return int(number)
    for pattern, status in NAMED.items():
        if re.search(pattern, complaint):
            return status

    return 400


def _of_every(status: int, complaint: str) -> str:
    """Return what every request would be refused for; empty for none of these."""
    if status in (400, 429):
        for kind, pattern in OF_EVERY.items():
            if pattern.search(complaint):
                return kind

    return ""


def page_title(body: bytes) -> str:
    """Return the title of a web page, as a proxy or a sign-in sends one; empty for any other body."""
    text = body[:LONGEST].decode("utf-8", "replace")
    if not _PAGE.match(text):
        return ""

    found = _TITLE.search(text)
    title = found[1] if found else "untitled"
    return f"a web page, “{one_line(html.unescape(title))[:100]}”"


def _parsed(text: str) -> Any:
    try:
        return from_json(text)
    except ValueError:  # no JSON, or nested without end
        return None


def _inside(value: Any) -> Any:
    """Return the error in the body of HTTP 200: OpenRouter and LiteLLM send one in place of choices, or in a choice."""
    if isinstance(value, list) and value:
        value = value[0]  # Google
    if not isinstance(value, dict):
        return None

    choices = value.get("choices")
    for choice in choices[:1] if isinstance(choices, list) else ():
        if isinstance(choice, dict) and (choice.get("error") or choice.get("finish_reason") == "error"):
            failed = "The model's provider failed within its answer (finish_reason: error)."
            return choice.get("error") or {"message": failed, "code": 502}

    return None if choices or value.get("data") else value


def _leaves(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (field, text) of the values in a body, also of JSON within a text: routers pass on a provider's error."""
    if isinstance(value, str):
        if wrapped := _WRAPPED.match(value):
            yield "type", wrapped[0]
        value = _BEHIND.sub("", value[wrapped.end() if wrapped else 0 : LONGEST])
        value = (_parsed(value) if value.lstrip()[:1] in ("{", "[") else None) or value

    if isinstance(value, dict) and depth < 9:
        if isinstance(place := value.get("loc"), list) and "msg" in value:  # pydantic: the rest repeats what was sent
            value = {"type": value.get("type"), "msg": f"{'.'.join(map(str, place[:5]))}: {value['msg']}"}
        for inner, content in value.items():
            yield from _leaves(content, inner, depth + 1)
    elif isinstance(value, list) and depth < 9:
        for content in value[:3]:
            yield from _leaves(content, name, depth + 1)
    elif isinstance(value, str | int) and value:
        yield name, str(value)


def _refused(status: int, param: str, complaint: str) -> tuple[str, int | None]:
    """Return what a server does not take, and its limit."""
    if status in (401, 402, 403, 408, 409, 429, 502, 503, 504):
        return "", None

    for kind, pattern in LIMITS.items():
        if found := pattern.search(complaint):
            limits = list(filter(None, found.groups()))
            return kind, int(limits[0]) if limits else None

    untaken = _UNTAKEN.search(complaint)
    if param.partition(".")[0] == SCHEMA or (_SCHEMA.search(complaint) and (status < 500 or untaken)):
        return SCHEMA, None
    if untaken and param in REPLACEMENTS:
        return param, None

    named = _NAMES.search(complaint) if untaken else None
    return (named[0] if named else ""), None


def _pause(headers: Mapping[str, str], said: str, now: float) -> float | None:
    """Return the seconds to wait: of the headers (milliseconds, seconds, a date), or said, as "again in 1m3.2s"."""
    seconds = 0.0
    for name, unit in (("retry-after", 1.0), ("retry-after-ms", 1000.0)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) / unit

    if not seconds:
        with suppress(ValueError, OverflowError):  # a year that there is not
            if date := parsedate_tz(headers.get("retry-after", "")):
                seconds = mktime_tz(date) - now

    if not seconds:
        seconds = next(filter(None, map(_said_seconds, _WAIT.finditer(said))), 0.0)

    return min(seconds, WAIT_S) if seconds > 0 else None  # also None for what is no number


def _said_seconds(found: re.Match[str]) -> float:
    hours, minutes, count, unit_name = found.groups()
    unit = 1000.0 if (unit_name or "").lower().startswith("m") else 1.0

    return 3600 * int(hours or 0) + 60 * int(minutes or 0) + float(count or 0) / unit


class Learnt:
    """What one model at one address does not take, learnt from its refusals. Safe to share between threads.

    With a ``path`` it is kept there, in the job's folder, so that a resumed job does not send what was refused.
    """

    FILE = "endpoints.json"

    def __init__(self, model: str, url: str, path: Path | None = None) -> None:
        self.refused: set[str] = set()
        self._name, self._path, self._lock = f"{model} at {url}", path, threading.Lock()
        kept = _kept(path).get(self._name, {})
        self.refused.update(name for name in (*REPLACEMENTS, *SCHEMA_KINDS) if name in kept.get("refused", ()))
        self.texts: int | None = kept.get("texts") or None  # at most so many in a request

    def fit(self, body: Mapping[str, Any], without_schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the body of a request with what is taken; ``without_schema`` in place of one whose format is not."""
        fitted = dict(body)
        kind = _kind_of(fitted)
        if kind in self.refused:
            del fitted[SCHEMA]
            if "json_object" not in self.refused:
                fitted[SCHEMA] = {"type": "json_object"}
            elif without_schema is not None:
                fitted = dict(without_schema)
        for name in sorted(self.refused & fitted.keys()):
            value, other = fitted.pop(name), REPLACEMENTS[name]
            if other is not None and other not in self.refused:
                fitted[other] = value
        return fitted

    def learn(self, refusal: Refusal, sent: Mapping[str, Any]) -> bool:
        """Learn from the refusal of the body ``sent``. Return True if another body should be sent."""
        name = _kind_of(sent) if refusal.refuses == SCHEMA else refusal.refuses
        if name in OF_EVERY:
            return False
        if name == "texts":
            texts, most = len(sent.get("input", ())), refusal.limit
            if texts < 2 or (most or 0) >= texts:  # a limit that this request kept
                return False
            self._keep(texts=most or (texts + 1) // 2)
            return True
        if not name or (name not in sent and name not in SCHEMA_KINDS):
            return False
        self._keep(name)
        return True

    @property
    def sentence(self) -> str:
        """Say in one line what is not taken; empty if nothing was refused."""
        words = {"json_schema": "JSON schema", "json_object": "JSON mode"}
        parts = [f"no {words.get(one, one)}" for one in sorted(self.refused)]
        if self.texts is not None:
            parts.append("one text a request" if self.texts == 1 else f"at most {self.texts} texts a request")
        if not parts:
            return ""

        return f"{self._name} takes {', '.join(parts)}: requests are sent accordingly."

    def _keep(self, name: str = "", texts: int | None = None) -> None:
        with self._lock:
            before = self.sentence
            if name:
                self.refused = self.refused | {name}
            if texts:
                self.texts = min(texts, self.texts or texts)
            if self.sentence == before:  # learnt by another thread meanwhile
                return
            print(self.sentence, file=sys.stderr, flush=True)
            if self._path is not None:
                entry = {"refused": sorted(self.refused), "texts": self.texts}
                write_json(self._path, {**_kept(self._path), self._name: entry})


def sentences(folder: Path) -> list[str]:
    """Return what a job learnt of its endpoints, a line each."""
    path = folder / Learnt.FILE
    names = [name.rpartition(" at ") for name in _kept(path)]
    return [line for model, _, url in names if (line := Learnt(model, url, path).sentence)]


# What is kept of each model at an address.
_KEPT: Any = dict[str, fields(refused=list[str], texts=Count | None)]  # type: ignore[misc]


def _kept(path: Path | None) -> dict[str, Any]:
    return (whole(_KEPT, path) if path is not None else None) or {}


def _kind_of(body: Mapping[str, Any]) -> str:
    """Return the kind of a body's response format; empty without one."""
    wanted = body.get(SCHEMA)
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    return str(kind or "")
