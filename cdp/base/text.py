"""Plurals, durations, sizes, signs (a true minus), intervals, p; CSV cells; finding by name; checks, escaping of input.

Without pydantic, so that a supervisor or the catalogue does not load it.
"""

from __future__ import annotations

import csv
import io
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import starmap
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cdp.base.errors import ConfigError, InputError, NotFoundError, some

LONGEST_SHOWN = 60  # characters of a wrong value in an error
SHOWN_IDS = 5
LONGEST_TITLE = 200  # characters of a name that a user gives

Known = TypeVar("Known")
_MARKDOWN = re.compile(r"([\\`*\[\]!])")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def shown(value: Any) -> str:
    """Return the beginning of a wrong value, for an error message. Raises nothing."""
    if not isinstance(value, str | int | float | bool | type(None)):
        return f"a {type(value).__name__}"
    try:
        text = repr(value[: LONGEST_SHOWN + 1] if isinstance(value, str) else value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST_SHOWN + 2 else f"{text[:LONGEST_SHOWN]}…"


def one_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def cut(text: str, limit: int) -> str:
    """At most ``limit`` characters, the last one an ellipsis where something is missing."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def capital(text: str) -> str:
    """``text`` with a capital letter first: a clause becomes a sentence."""
    return text[:1].upper() + text[1:]


# Words of settings and results that are written otherwise than they are spelt.
WRITTEN = {
    "gpu": "GPU", "gpus": "GPUs", "lora": "LoRA", "ri": "RI", "kappa": "κ", "eval": "evaluation", "bm25": "BM25",
    "cw": "CW", "NDCG@10": "NDCG@10 (%)", "ndcg@10": "NDCG@10 (%)", "mrr@10": "MRR@10 (%)", "map@100": "MAP@100 (%)",
    "p@1": "P@1 (%)", "recall@10": "recall@10 (%)", "recall@100": "recall@100 (%)",
}  # fmt: skip

# Settings and results whose name says too little.
NAMED = {
    "per_doc": "queries per document", "max_documents": "maximum documents", "dev": "dev benchmark",
    "ndcg@10_of_files": "NDCG@10 per file (%)", "best_ndcg@10": "best NDCG@10 on dev (%)", "by": "round-trip rank by",
    "round_trip_rank": "round-trip rank at most", "cross_encoder": "cross-encoder",
    "at_least": "cross-encoder score at least", "usable": "leave out unusable queries",
    "n_shared": "queries of several documents", "seconds": "time", "save_steps": "steps between checkpoints",
    "eval_steps": "steps between evaluations", "scale": "scale (1 / temperature)",
    "clip_norm": "largest gradient norm", "distil": "share of the teacher's labels", "beside": "further query sets",
    "hard_negatives": "hard negatives per pair",
    "unreasoned": "queries without a reasoned form", "left_out_per_epoch": "pairs left out per epoch",
    "filled_the_limit": "documents cut at the token limit", "max_length": "maximum length (tokens)",
    "stopped": "stopped on request", "early": "stopped as dev no longer improved",
    "masked": "in-batch negatives masked", "skipped": "steps skipped", "loss_first": "loss in the first steps",
    "loss_last": "loss in the last steps", "best_step": "step of the best model", "rho": "Spearman ρ",
    "rho_p": "p of ρ", "interval": "95% interval", "existed": "was here before",
}  # fmt: skip


def words_of(field: str) -> str:
    """Return the name of a setting or result in words: ``lora_rank`` → ``LoRA rank``."""
    if field in NAMED:
        return NAMED[field]
    return " ".join(WRITTEN.get(word, word) for word in field.removeprefix("n_").split("_"))


def label_of(field: str) -> str:
    """Return ``words_of`` as a label: ``Learning rate``."""
    words = words_of(field)
    return words if words.startswith("κ") else capital(words)


def name_and_split(text: str, split: str = "") -> tuple[str, str]:
    """Return name and split of ``name:split``; a colon may belong to a path, and a split never holds a slash.

    ConfigError where ``split`` is another one than the text's.
    """
    name, _, own = text.rpartition(":")
    if not name or {"/", "\\"} & set(own) or typed_folder(text) is not None:
        return text, split
    if split and own and split != own:
        raise ConfigError(f"The benchmark {text} names the split {own}, and the split {split} is given beside it.",
                          hint="Name the split once.")  # fmt: skip
    return name, own or split


def comma_list(text: str) -> list[str]:
    """Return the entries of ``a, b``, blank ones left out."""
    return list(filter(None, map(str.strip, text.split(","))))


def storable(text: str) -> bool:
    """Return True if a text has no NUL and no lone surrogate: files and databases take it."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def encodable(text: str) -> str:
    """Return a text with lone surrogates, which files and tokenizers refuse, as question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def signed(value: float, digits: int = 2) -> str:
    """Format a difference with its sign and a true minus: ``+3.28``, ``−0.61``, but ``0.00``."""
    return f"{0:.{digits}f}" if abs(value) < 0.5 * 10**-digits else f"{value:+.{digits}f}".replace("-", "−")


def interval(ends: Sequence[float | None] | None, digits: int = 2, *, sign: bool = False) -> str:
    """Format ``7.42 to 8.28``, with ``sign`` as differences: ``+1.20 to +6.40``; a dash without one."""
    low, high = ends or (None, None)
    if low is None or high is None:
        return "–"
    if sign:
        return f"{signed(low, digits)} to {signed(high, digits)}"
    return f"{low:.{digits}f} to {high:.{digits}f}".replace("-", "−")


def p_value(p: float | None) -> str:
    """Format ``0.032``, ``< 0.001``; a dash for None."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def written(value: Known | None, form: Callable[[Known], str], unknown: str | None = "") -> Any:
    """Return ``form(value)``, or ``unknown`` for None."""
    return unknown if value is None else form(value)


def counted(n: int, noun: str, plural: str = "") -> str:
    """Format ``1 benchmark``, ``3,141 benchmarks``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def tally(counts: Mapping[Any, float], form: str = "{}: {:,}") -> str:
    """Format ``train: 1,200, test: 300``; ``form`` takes a name and its number."""
    return ", ".join(starmap(form.format, counts.items()))


def clustered(n: int, clusters: int, noun: str = "") -> str:
    """Format ``300``, or ``300 in 41 groups`` for queries that share documents; the ``noun`` follows the number."""
    return f"{n:,}{noun}" if clusters == n else f"{n:,}{noun} in {counted(clusters, 'group')}"


def duration(seconds: float | None) -> str:
    """Format ``8 s``, ``3 min``, ``1 h 20 min``; a dash for None."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if minutes < 10 and rest else f"{minutes} min"
    hours, rest = divmod(whole // 60, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def size(n_bytes: float) -> str:
    """Format ``812 B``, ``12.4 MB``, ``1.3 GB``: decimal units, as disks are sold."""
    value, units = float(n_bytes), ("B", "kB", "MB", "GB", "TB", "PB", "EB")
    for unit in units:
        if value < 1000 or unit == units[-1]:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"


def escaped(text: object) -> str:
    """Return a text on one line, with Markdown and HTML escaped."""
    # Not underscores, dashes and bars: they are part of names, and reports are read as plain text too.
    line = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(r"\\\1", line)


def spreadsheet(value: Any) -> Any:
    """Return a CSV cell: a text that a spreadsheet would evaluate as a formula gets a leading apostrophe."""
    if not isinstance(value, str) or len(value) < 2 or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV below a header, each cell by ``spreadsheet``."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(spreadsheet, row) for row in rows)
    return out.getvalue()


class Named(Protocol):
    """An object with a unique id and a user's name for it."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


def checked_title(name: str) -> str:
    """Return a user's name for something if it can be stored and shown; InputError otherwise."""
    if not storable(name) or len(name) > LONGEST_TITLE:
        raise InputError(
            f"{shown(name)} cannot be a name.",
            hint=f"A name has at most {LONGEST_TITLE} characters, without NUL and halves of surrogate pairs.",
        )
    return name


def pick(what: str, text: str, things: Sequence[T], *, none_yet: str = "") -> T:
    """Return the thing with this id, else name, else unique id or name prefix; case-insensitive.

    ConfigError if several match. NotFoundError if none does: it offers the nearest, or ``none_yet`` if ``things`` is
    empty. ``what`` is the word for a thing in both messages.
    """
    wanted = text.strip().casefold()
    steps: tuple[Callable[[T], bool], ...] = (
        lambda thing: thing.id.casefold() == wanted,
        lambda thing: thing.name.casefold() == wanted,
        lambda thing: bool(wanted) and thing.id.casefold().startswith(wanted),
        lambda thing: bool(wanted) and thing.name.casefold().startswith(wanted),
    )
    for fits in steps:
        matches = [thing for thing in things if fits(thing)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            ids = some(list(map(attrgetter("id"), matches)), SHOWN_IDS)
            raise ConfigError(f"{text!r} could be more than one {what}.", hint=f"Use the id: {ids}.")

    if not things:
        raise NotFoundError(what, text, known=(), hint=none_yet)

    known, names = zip(*map(attrgetter("id", "name"), things), strict=True)
    raise NotFoundError(what, text, known=known, also=names)


# ``https://host``, and as a path writes it: ``https:/host``. A single letter is a drive.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def typed_path(text: str | Path) -> Path:
    """Return ``text`` as a path, with ``~`` expanded. InputError for an address, or if the system has no such paths."""
    if _ADDRESS.match(str(text)):
        raise InputError(
            f"{shown(str(text))} is an address, and a file on this machine is needed.",
            hint="Download it, then name the file.",
        )
    try:
        path = Path(text).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            path.stat()
    except (OSError, RuntimeError, ValueError) as error:  # too long, links in a circle, ~user of no account, NUL
        raise InputError(f"{shown(str(text))} cannot be a path: {error}.", hint="Check it.") from error
    return path


def typed_folder(text: str) -> Path | None:
    """Return the existing folder of this path, None if there is none."""
    try:
        path = typed_path(text)
    except InputError:
        return None
    return path if text.strip() and path.is_dir() else None


def public(value: Any) -> Any:
    """Return a JSON value for publication: absolute paths are reduced to their last part."""
    if isinstance(value, str):
        return Path(value).name if value.startswith(("/", "~")) else value
    if isinstance(value, Mapping):
        return {name: public(inner) for name, inner in value.items()}
    return [public(inner) for inner in value] if isinstance(value, list | tuple) else value


SNIPPET = 260  # characters: three or four lines of a column
BEFORE = 50  # characters before the first match
LOOKED_AT = 6000  # characters of a document

# A character of Chinese, Japanese or Korean: no spaces between words.
_JOINED = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


SEPARATOR = " · "


def condition_name(retriever: str, queries: str = "", per_doc: str | int = 0, *details: str) -> str:
    """Name a condition as every table, figure and answer does: ``minilm · diverse × 5 · cw``.

    A retriever alone is untrained. Without ``per_doc`` it is all conditions of these queries.
    """
    written = f"{queries} × {per_doc}" if queries and per_doc else queries
    return SEPARATOR.join(filter(None, [retriever, written, *details]))


def rate(value: float) -> str:
    """A learning rate as it is printed: ``2e-6``."""
    digits, _, exponent = f"{value:.3g}".partition("e")
    if exponent:
        return f"{digits}e{int(exponent)}"
    digits, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(digits):g}e{int(exponent)}"


def marked(text: str, words: Sequence[str]) -> list[tuple[str, bool]]:
    """Split ``text`` into pieces, each with whether it is one of the ``words`` (case-insensitive, whole words).

    Chinese, Japanese and Korean words match anywhere.
    """
    if not words:
        return [(text, False)] if text else []
    apart = [re.escape(word) if _JOINED.search(word) else rf"\b{re.escape(word)}\b" for word in words]
    pattern = re.compile(f"({'|'.join(sorted(apart, key=len, reverse=True))})", re.IGNORECASE)
    return [(piece, i % 2 == 1) for i, piece in enumerate(pattern.split(text)) if piece]


def snippet(text: str, words: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the ``SNIPPET`` characters of the text with the most matches, as pieces of ``marked``, with ellipses."""
    line = " ".join(text[:LOOKED_AT].split())
    starts, at = [], 0
    for piece, matches in marked(line, words):
        if matches:
            starts.append(at)
        at += len(piece)

    best = max(starts, key=lambda start: sum(start <= other < start + SNIPPET - BEFORE for other in starts), default=0)
    begin = max(0, min(best - BEFORE, len(line) - SNIPPET))  # no further than needed to show the end
    if begin > 0:
        begin = line.find(" ", begin, begin + BEFORE) + 1 or begin  # the next word; none in a script without spaces

    end = len(line)
    if end - begin > SNIPPET:
        end = line.rfind(" ", begin + SNIPPET // 2, begin + SNIPPET)
        if end <= begin:  # one long word
            end = begin + SNIPPET

    shown_part = line[begin:end].strip()
    if begin > 0:
        shown_part = f"… {shown_part}"
    if end < len(line) or len(text) > LOOKED_AT:
        shown_part += " …"

    return marked(shown_part, words)


# Called with the phase, what is done and the total (0 if unknown); may raise to end the work.
Progress = Callable[[str, int, int], None]
# The same within one phase: called with what is done and the total.
PhaseProgress = Callable[[int, int], None]


def silent(*_: object) -> None:
    """Say nothing: the default of both."""


# Estimating tokens without a tokenizer, and truncating documents at the end of a sentence.
#
# An endpoint's tokenizer is unknown, so lengths are estimated from the script: four characters of an alphabet per
# token, one of Chinese, Japanese and Korean, 1.5 of other scripts. For English prose that is within about 15%, mostly
# above.

_WIDE_SCRIPTS = r"\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
# Compiled at first use: classes of so many characters take 5 ms, where a command starts that counts no tokens.
_WIDE, _OTHER = rf"[{_WIDE_SCRIPTS}]", rf"[^\x00-\u024f{_WIDE_SCRIPTS}]"
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*(?=\s)|[。！？；]+[」』”）]*|[؟۔।]+|\n+")


def estimate_tokens(text: str) -> int:
    """Return the estimated number of tokens; at least one for a text that is not empty."""
    if not text:
        return 0
    wide, other = len(re.findall(_WIDE, text)), len(re.findall(_OTHER, text))
    return max(1, round(wide + other / 1.5 + (len(text) - wide - other) / 4))


def cut_to_tokens(text: str, max_tokens: int) -> str:
    """Truncate ``text`` to ``max_tokens`` at the last sentence end in the second half of what fits, else at a space."""
    if len(text) <= max_tokens // 2 or estimate_tokens(text) <= max_tokens:
        return text
    longest = min(len(text), 4 * max_tokens + 4)  # a token is four characters at most
    low = bisect_right(range(longest + 1), max_tokens, key=lambda n: estimate_tokens(text[:n])) - 1
    fitting = text[:low]
    ends = [match.end() for match in _SENTENCE_END.finditer(text[: low + 1]) if low // 2 <= match.end() <= low]
    at = ends[-1] if ends else fitting.rfind(" ")
    return fitting[: at if at > low // 2 else low].rstrip()
