"""Cutting keys out of all that is written or shown: which texts are keys, and the forms in which they are found.

Every writer of the workspace's files asks ``holds_key`` of the whole text that it writes, after parsing and before
anything is cut, and so do the logs of workers. A key is recognised plain, as JSON, URL and HTML escape its characters
(also one in the other), and where characters or a thinking block stand in it that parsing removes. Of a text without
white space so does every part of 12 characters, since servers cut texts too. Base64 and reversed keys are not
recognised.

A key counts as secret from 8 characters on if it has letters and digits, and from 20 on in any case; "EMPTY", "ollama"
and "sk-no-key-required" do not.
"""

from __future__ import annotations

import html
import os
import re
import sys
import threading
import weakref
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TextIO

CUT = "[key cut out]"
# Characters of a key: placeholders ("none", "EMPTY") are shorter, or are words alone.
SHORTEST, ANY_WORDS = 8, 20
DISTINCT = 6  # "xxxxxxxx…" is no key
# A part of a key that is cut out too, and of such a part what is looked for first: every part holds one of these.
PART, ANCHOR = 12, 6

# No letter follows: a TOKENIZER and a KEYBOARD are no secrets.
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?(?![A-Za-z])", re.IGNORECASE)
_PATTERNS = (
    re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{12,}"),
    re.compile(r"\bhf_[A-Za-z0-9]{16,}"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"(?i)(?<=\bbearer )[A-Za-z0-9._~+/=\-]{12,}"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
_NAMED = re.compile(
    r"(?i)((?:api[_-]?key|secret|password|passwd|(?:access|auth)[_-]?token)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]{6,}"
)

# It begins with a set of characters: so the library skips from one to the next. Backslashes are read from the first of
# a row on and never twice: an answer may be nothing else.
_ESCAPE = re.compile(
    r"[\\%&](?:(?<=\\)(?<!\\\\)\\*+"
    r"(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|u\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|[nrtbf])"
    r"|(?<=%)([0-9a-fA-F]{2})|(?<=&)#?[0-9A-Za-z]{1,31};)"
)
_ROUNDS = 4  # escapes of escapes
_THINKING = re.compile(r"<(think|thinking|thought|reasoning)\b[^<>]*>.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
# Dropped before texts are compared, with everything that is not ASCII (zero-width characters among them).
_DROPPED = bytes(range(33)) + b"\x7f\"'\\*`~"


@dataclass(frozen=True)
class _Known:
    """What this process looks for, in folded form: whole keys, parts of keys, and the anchors of both."""

    wholes: tuple[str, ...] = ()
    parts: frozenset[str] = frozenset()
    anchors: tuple[str, ...] = ()


# Looked at for each text, whether they are set or not: a process may exchange one variable for another.
_OWN = ("CDP_API_KEY", "OPENAI_API_KEY", "HF_TOKEN")

_lock = threading.RLock()  # a client may be freed while its thread holds the lock
_given = Counter[str]()
_names: tuple[str, ...] = ()
_stamp: tuple[object, ...] = ()
_known = _Known()


def is_secret(name: str) -> bool:
    """Return True if an environment variable of this name holds a secret."""
    return bool(_SECRET_NAME.search(name))


def know(owner: object, key: str) -> None:
    """Look for ``key`` as long as ``owner``, which sends it, is alive."""
    # No longer: a visitor may type any words as a key, and they would be cut out of others' texts for ever.
    with _lock:
        _given[key] += 1
    weakref.finalize(owner, _forget, key).atexit = False


def _forget(key: str) -> None:
    with _lock:
        _given[key] -= 1
        if _given[key] <= 0:
            del _given[key]


def holds_key(text: str) -> bool:
    """Return True if ``text`` may hold a key or a part of one; False means that it holds none."""
    anchors = _keys().anchors
    for reading in _readings(text) if anchors else ():
        for anchor in anchors:
            if anchor in reading:
                return True
    return False


def clean(text: str) -> str:
    """Return ``text`` without the keys that this process knows: its environment's, and those that it was given."""
    if not holds_key(text):
        return text
    spans = sorted(span for reading in _placed(text) for span in _found(*reading))
    pieces, at = [], 0
    for start, end in spans:
        if start >= at:
            pieces += [text[at:start], CUT]
        at = max(at, end)
    return "".join([*pieces, text[at:]])


def cleaned(value: Any) -> Any:
    """Return a value of texts, lists and mappings with every text cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {cleaned(name): cleaned(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(cleaned, value))
    return value


def redact(text: str) -> str:
    """Return ``text`` without the keys that this process knows and without what looks like a key."""
    text = clean(text)
    for pattern in _PATTERNS:
        text = pattern.sub(CUT, text)
    return _NAMED.sub(rf"\1{CUT}", text)


@contextmanager
def cleaned_output() -> Iterator[None]:
    """Write what the block prints without keys."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Lines(before[0]), _Lines(before[1])
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # a full disk, a closed stream
                stream.flush()
        sys.stdout, sys.stderr = before


class _Lines:
    """A stream that is cleaned up to the end of a line: libraries write a line, and a key in it, in pieces."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._held = stream, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._held += text
        if text.endswith("\n"):
            self._release()
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._release()
        self._stream.flush()

    def _release(self) -> None:
        held, self._held = self._held, ""
        self._stream.write(clean(held))


def _keys() -> _Known:
    """Return what to look for; made again when a secret of the environment or a given key has changed."""
    global _names, _stamp, _known
    given = tuple(_given)
    if _stamp == (len(os.environ), given, *map(os.environ.get, _names)):
        return _known
    with _lock:
        _names = tuple({*_OWN, *filter(is_secret, os.environ)})
        values = tuple(map(os.environ.get, _names))
        _known = _known_of({value for value in (*values, *given) if value and _counts(value)})
        _stamp = (len(os.environ), given, *values)
        return _known


def _counts(value: str) -> bool:
    """Return True if a key is long and mixed enough to be cut out of texts; the path of a file of keys is not."""
    folded = _folded(value)
    if len(folded) < SHORTEST or len(set(folded)) < DISTINCT or os.path.exists(value):
        return False
    mixed = any(map(str.isdigit, folded)) and any(map(str.isalpha, folded))
    return mixed or len(folded) >= ANY_WORDS


def _known_of(values: set[str]) -> _Known:
    wholes, parts, anchors = set[str](), set[str](), set[str]()
    for value in values:
        folded = _readings(value)[0]
        if len(folded) < PART or len(value.split()) > 1:  # parts of a sentence are ordinary words
            wholes |= {folded, _readings("+".join(value.split()))[0]}
            continue
        parts.update(folded[i : i + PART] for i in range(len(folded) - PART + 1))
        anchors.update(folded[i : i + ANCHOR] for i in range(0, len(folded) - ANCHOR + 1, ANCHOR))
    return _Known(tuple(wholes), frozenset(parts), (*wholes, *anchors))


def _readings(text: str) -> list[str]:
    """Return a text as it is compared: unescaped and folded; once more without its thinking blocks."""
    text = text.replace('\\"', "")  # most lines have no other escape, and both are dropped anyway
    for _ in range(_ROUNDS):
        if not ("\\" in text or "%" in text or "&" in text):
            break
        text, n = _ESCAPE.subn(_unescaped, text)
        if not n:
            break
    folded = [_folded(text)]
    if "<" in text and _THINKING.search(text):
        folded.append(_folded(_THINKING.sub("", text)))
    return folded


def _folded(text: str) -> str:
    return text.encode("ascii", "ignore").translate(None, _DROPPED).decode("ascii")


def _unescaped(match: re.Match[str]) -> str:
    """Return the character of an escape; nothing for an escaped line break, or a character that is not ASCII."""
    digits = match[match.lastindex] if match.lastindex else ""
    if digits:
        return chr(code) if (code := int(digits, 16)) < 128 else ""
    return "" if match[0].startswith("\\") else html.unescape(match[0])


def _placed(text: str) -> Iterator[tuple[str, array[int], array[int]]]:
    """Yield the readings of a text, each with the places in it where its characters begin and end."""
    starts, ends = array("I", range(len(text))), array("I", range(1, len(text) + 1))
    now = text
    for _ in range(_ROUNDS):
        escapes = [(match.start(), match.end(), _unescaped(match)) for match in _ESCAPE.finditer(now)]
        if not escapes:
            break
        now, starts, ends = _replaced(now, starts, ends, escapes)
    yield _folded_with_places(now, starts, ends)
    if blocks := [(match.start(), match.end(), "") for match in _THINKING.finditer(now)]:
        yield _folded_with_places(*_replaced(now, starts, ends, blocks))


def _replaced(
    text: str, starts: array[int], ends: array[int], changes: list[tuple[int, int, str]]
) -> tuple[str, array[int], array[int]]:
    """Return text and places with each (start, end) replaced by a text, whose characters all take its place."""
    pieces, begins, stops, at = list[str](), array("I"), array("I"), 0
    for start, end, new in [*changes, (len(text), len(text), "")]:
        pieces += [text[at:start], new]
        begins.extend(starts[at:start])
        stops.extend(ends[at:start])
        if new:
            begins.extend([starts[start]] * len(new))
            stops.extend([ends[end - 1]] * len(new))
        at = end
    return "".join(pieces), begins, stops


def _folded_with_places(text: str, starts: array[int], ends: array[int]) -> tuple[str, array[int], array[int]]:
    kept = [i for i, character in enumerate(text) if character < "\x7f" and ord(character) not in _DROPPED]
    return _folded(text), array("I", [starts[i] for i in kept]), array("I", [ends[i] for i in kept])


def _found(folded: str, starts: array[int], ends: array[int]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of every key and part of one, in the places of the text before it was folded."""
    known = _keys()
    for i in range(len(folded) - PART + 1):
        if folded[i : i + PART] in known.parts:
            yield starts[i], ends[i + PART - 1]
    for whole in known.wholes:
        at = folded.find(whole)
        while at >= 0:
            yield starts[at], ends[at + len(whole) - 1]
            at = folded.find(whole, at + 1)
