"""Answer and thought out of a model's text: channels, tool calls, end marks, fences, whether it is whole. Pure.

How models mark a thought and an answer is a table, ``data/words/answers.toml``: the next family is one row of it.

Marks are data where an answer is about them ("what does <think> do"): JSON is read as it stands, and in a list a mark
counts only at the edge of a line. Every step takes time in proportion to the text's length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from cdp.base.workspace import shipped_table


@dataclass(frozen=True)
class Reading:
    """An answer without thought, wrapping and end marks. ``complete``: the model ended it itself."""

    answer: str
    thought: str
    complete: bool


@dataclass(frozen=True)
class Family:
    """A row of the table, which explains its columns."""

    models: str
    source: str
    opening: str = ""
    closing: str = ""
    answer: str = ""
    answer_end: str = ""
    found: str = ""


_TABLE = shipped_table("words/answers")
FAMILIES = [Family(*row) for row in _TABLE["family"]]
ENDS, TURNS, TOOLS = (tuple(_TABLE[name]) for name in ("ends", "turns", "tools"))
ENDED, LENGTH, FILTER = (frozenset(_TABLE[name]) for name in ("ended", "length", "filter"))
# The special tokens that a local model's text must keep for this reader.
MARKS = {*ENDS, *TURNS, *TOOLS, "<|channel|>", "<|message|>", "<|constrain|>", "<|channel>"} | {
    mark.replace("…", "") for row in FAMILIES for mark in (row.opening, row.closing, row.answer, row.answer_end)
}
_SENTENCE_END = tuple(".!?…。！？؟।:;\"'”’»」』)]}`*>")


def _pattern(*marks: str) -> str:
    """Return a pattern for any of these; ``…`` is more of the line, not of a word."""
    return "(?:" + "|".join(r"(?:\W[^\n]{0,80}?)??".join(map(re.escape, mark.split("…"))) for mark in marks) + ")"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


_AROUND = 400  # characters before or behind a mark that are looked at
MAX_MARKS = 50  # of thoughts within a thought
_HEAD = r"(?:<\|(?:start|begin|im_start|start_header_id)\|>assistant(?:<\|end_header_id\|>)?\s*+)?"
_SPLITS = [
    (row, _compiled(_HEAD + _pattern(row.opening)), _compiled(_HEAD + _pattern(row.answer)))
    for row in FAMILIES if row.found
]  # fmt: skip
_CLOSED = list(dict.fromkeys((row.opening, row.closing) for row in FAMILIES if row.closing))
_OPENINGS = "|".join(f"({_pattern(opening)})" for opening, _ in _CLOSED)
_ANY_OPENING = _compiled(_OPENINGS)
_OPENING_HERE = _compiled(rf"\s*+{_HEAD}(?:{_OPENINGS})")
_OPENING = _compiled(rf"^[ \t]*+{_HEAD}(?:{_OPENINGS})")
_BOTH = [_compiled(f"(?P<open>{_pattern(opening)})|{_pattern(closing)}") for opening, closing in _CLOSED]
# "<|end|>" also ends answers, and "</details>" is HTML.
_CLOSING = _compiled(_pattern(*sorted({closing for _, closing in _CLOSED} - {"<|end|>", "</details>"})))
_WRAPS = [
    (_compiled(("" if "|" in row.answer else r"^[ \t]*+") + re.escape(row.answer)), row.answer_end)
    for row in FAMILIES if row.answer and not row.found
]  # fmt: skip
_TURN = _compiled(rf"{_pattern(*ENDS)}[ \t]*+(?:\n\s*+|(?={_pattern(*TURNS, *ENDS)}))")
_TOOL = _compiled(rf"\A{_pattern(*TOOLS)}")
_FENCED = re.compile(r"\A(?:```|~~~)[\w+-]*[ \t]*\n((?:(?!```|~~~).)*+)(?:```|~~~)\s*\Z", re.DOTALL)
_ITEM = re.compile(r"\s*(?:[-*•]|[(\[]?\d{1,3}[.):\]])\s")
_ANSWER_BEGINS = re.compile(r"[ \t]*+(?:\n|\Z|[\[{<◁]|```|1[.)])")


def text_and_thought(message: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the text of a chat message, None if it holds none, and the thought beside it.

    The arguments of a tool's call are its text where there is no other: some routers ask for JSON that way.
    """
    content, thoughts = message.get("content"), [message.get(name) for name in _TABLE["thought_fields"]]
    if isinstance(content, list):
        thoughts += [json.dumps(part["thinking"]) for part in content if part.get("thinking")]
        content = _text_of(content)

    thought = "\n".join(text for text in thoughts if isinstance(text, str) and text.strip())
    calls = message.get("tool_calls")
    if not content and isinstance(calls, list) and calls:
        content = _arguments(calls[0]) or content
    if not content and thought:
        return None, thought

    return content, thought


def _text_of(parts: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the text of a message in parts; None where no part is one."""
    texts = [part.get("text") for part in parts if part.get("type", "text") == "text"]
    if all(text is None for text in texts):
        return None
    return "".join(filter(None, texts))


def read(text: str, finish_reason: str = "stop") -> Reading:
    """Return what a message's text holds. Without a ``finish_reason`` an answer is whole if it ends as a sentence."""
    bare = _without_ends(text)
    answer, thought, closed = bare, "", True
    if not _is_json(bare):
        answer, thought, closed = _by_answer_mark(bare) or _by_closing_marks(bare)

    answer = _unwrapped(_one_turn(answer.strip()))
    reason = finish_reason.lower()
    ended = reason in ENDED or (not reason and (bare != text.strip() or answer.endswith(_SENTENCE_END)))
    return Reading(answer, thought.strip(), closed and ended)


def until(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """``text`` up to the first stop text, and whether there is one; stop texts before any other text do not count."""
    for mark in stop:
        text = text.removeprefix(mark)

    places = [text.find(mark) for mark in stop if mark in text]
    return (text[: min(places)], True) if places else (text, False)


def _by_answer_mark(text: str) -> tuple[str, str, bool] | None:
    """Divide a text at the last mark of an answer: (answer, thought, whether every thought ends); None where it holds
    none, and begins with no thought that needs one."""
    lower = text.lower()
    for row, begins, splits in _SPLITS:
        begun = begins.match(text) if row.opening else None
        if row.found == "phrase" and not begun:
            continue

        marks = []
        # Most often there is none: a pattern would look at every character.
        if row.answer.partition("…")[0].lower() in lower:
            for mark in splits.finditer(text):
                if begun or _line_before(text, mark.start())[-1:] in ("", ">"):
                    marks.append(mark)

        if marks:
            return _before(text[marks[-1].end() :], row.answer_end), text[: marks[-1].start()], True
        if begun and not row.closing and row.opening != "analysis":  # which may begin a query
            return "", text, False

    return None


def _by_closing_marks(text: str) -> tuple[str, str, bool]:
    """Take the thoughts between their marks out of a text, and what stands before a closing mark alone."""
    kept: list[str] = []
    thoughts: list[str] = []
    at, closed = 0, True
    while closed and (mark := _next_opening(text, at)):
        end = _end_of(_BOTH[(mark.lastindex or 1) - 1], text, mark.end())
        closed = end is not None
        start, stop = end or (len(text), len(text))
        kept.append(text[at : mark.start()])
        thoughts.append(text[mark.end() : start])
        at = stop

    answer = "".join([*kept, text[at:]])
    if stray := _stray(answer):
        thoughts.append(answer[: stray[0]])
        answer = answer[stray[1] :]

    return answer, "\n".join(thoughts), closed


def _next_opening(text: str, at: int) -> re.Match[str] | None:
    """Return the next mark of a thought: right behind the last one, else at the beginning of a line."""
    here = _OPENING_HERE.match(text, at) if at else None
    return here or _OPENING.search(text, at)


def _end_of(marks: re.Pattern[str], text: str, at: int) -> tuple[int, int] | None:
    """Return the place of the closing mark: the one that ends nested thoughts, else the last at an edge of a line, else
    the first."""
    depth, at_edge, first = 1, None, None
    for mark in islice(marks.finditer(text, at), MAX_MARKS):
        if mark["open"]:
            depth += not _line_before(text, mark.start())
            continue
        first = first or mark.span()
        if _is_edge(text, mark):
            at_edge, depth = mark.span(), depth - 1
            if not depth:
                break
    return at_edge or first


def _stray(text: str) -> tuple[int, int] | None:
    """Return the place of the last closing mark whose opening stood in the prompt; not of one that a list is about."""
    if re.match(r'\s*+(?:\{|\[\s*+["{\[]|```)', text):
        return None
    for mark in reversed(list(_CLOSING.finditer(text))[-MAX_MARKS:]):
        line, behind = _line_before(text, mark.start()), text[mark.end() : mark.end() + _AROUND].lstrip()
        next_item = not behind or (_ITEM.match(behind) and not _ANSWER_BEGINS.match(behind))
        about = _ITEM.match(line) and (next_item or not _is_edge(text, mark))
        if not about and not _ANY_OPENING.search(line):
            return mark.span()
    return None


def _line_before(text: str, at: int) -> str:
    """Return what stands before this place in its line."""
    return text[max(0, at - _AROUND) : at].rpartition("\n")[2].strip()


def _is_edge(text: str, mark: re.Match[str]) -> bool:
    """Return True for a mark that begins its line, or is followed by a line's end or an answer's beginning."""
    return not _line_before(text, mark.start()) or bool(_ANSWER_BEGINS.match(text, mark.end()))


def _without_ends(text: str) -> str:
    """Return the text without white space and end marks behind it."""
    end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        mark = next((mark for mark in ENDS if text.endswith(mark, 0, end)), "")
        # Of HTML: a query may end in <s>struck out</s>.
        if not mark or (mark == "</s>" and "<s>" in _line_before(text, end)):
            return text[:end].lstrip()
        end -= len(mark)


def _one_turn(text: str) -> str:
    """Return the text up to the end mark of its turn; between the items of a list the marks alone go."""
    mark = _TURN.search(text)
    if mark is None or _is_json(text):
        return _without_ends(text)
    if _ITEM.match(text[mark.end() : mark.end() + _AROUND]):
        return _without_ends(_TURN.sub("\n", text))
    return _without_ends(text[: mark.start()])


def _unwrapped(text: str) -> str:
    """Return what stands between the marks of an answer, in a code fence, or as the arguments of a tool's call."""
    if not _is_json(text):
        for opening, ending in [*_WRAPS, *_WRAPS]:
            for mark in list(opening.finditer(text))[-1:]:
                text = _before(text[mark.end() :], ending)

    if fenced := _FENCED.match(text):
        text = fenced[1].strip()

    start = re.match(r"[\[{]", text)
    if tool := _TOOL.match(text):
        text = text[tool.end() :]
        start = re.search(r"[\[{]", text)

    if start:
        with suppress(ValueError, RecursionError):
            value, _ = json.JSONDecoder(strict=False).raw_decode(text, start.start())
            return _arguments(value) or text.strip()

    return text.strip()


def _arguments(call: Any) -> str:
    """Return the arguments of a tool's call as JSON; empty for anything else."""
    if isinstance(call, list) and call:
        call = call[0]
    if not isinstance(call, Mapping) or not {"name", "tool_name", "function"} & set(call):
        return ""

    inside = call
    if isinstance(call.get("function"), Mapping):
        inside = call["function"]

    found = inside.get("arguments") or inside.get("parameters") or ""
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _before(text: str, end: str) -> str:
    """Return the text up to the last such mark in it; all of it where there is none."""
    if end:
        for mark in list(re.finditer(re.escape(end), text, re.IGNORECASE))[-1:]:
            text = text[: mark.start()]
    return text.strip()


def _is_json(text: str) -> bool:
    """Return True for a JSON object or list, also in a code fence."""
    fenced = _FENCED.match(text)
    body = fenced[1] if fenced else text
    if body.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(body, strict=False)
    except (ValueError, RecursionError):
        return False
    return True
