"""Queries out of a raw answer: numbering, JSON, preambles, refusals, longest query, a cut answer; drops are counted.

The prompts end with an opened list ("1."), so an answer may begin with the first query itself, without its number.
Understood: numbered and lettered lists in many styles and scripts, bullets, headings, tables, tags, plain lines, JSON,
code fences, thinking blocks, preambles and closing remarks, quotes, bold marks and format labels around queries.

An answer is anything at all: every step takes time in proportion to its length, and nothing in it raises. So no pattern
here may look at the same run of spaces, marks or brackets from each of its places.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cdp.llm.reader import Reading

# Characters. A longer line is not a search query; it is counted as ``over_long`` and left out.
LONGEST_QUERY = 400

# Characters of a query that is a paragraph.
LONGEST_PASSAGE = 2000

# Characters of bold marks, quotes and labels around a query, at the most.
MARKS = 100

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FENCE = re.compile(r"(?:```|~~~)\s*[\w+-]*")
_DECORATION = r"[*_`#>\s]*"
_NUMBER = re.compile(
    rf"^{_DECORATION}(?:q(?:uery|uestion)?\.?\s*#?\s*)?"
    r"(?:[(（\[]\s*(?P<enclosed>\d{1,3})\s*[)）\]][.:．、：]?"
    r"|(?P<open>\d{1,3})\s*(?:[.)](?!\d)|[:：．。、）]|\ufe0f?\u20e3|\s[-–—](?=\s))"
    r"|(?P<ringed>[①-⒛❶-❿➀-➓]))"
    r"(?:[*_`]+\s+|\s*)(?P<rest>.*)$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*[-*+•‣◦▪●○·・–—]\s+(?P<rest>.*)$")
_INLINE_NUMBER = re.compile(r" (?=[(（]?(\d{1,2})[.)）、．] ?\S)")
# Of a list, of JSON, of a field: what bare lines do not have.
_ITEM_MARK = re.compile(
    r"^[*_`#>\s]*+(?:[\[{]|[-*•–]\s|[(（\[]?\d{1,3}\s?[.)\]:：．。、）]|(?:question|query|task)\b[*_\s]*[:：])",
    re.IGNORECASE | re.MULTILINE,
)
# Lists that count in letters or in Roman numerals.
_LETTER = re.compile(r"^[*_\s]*[(\[]?(?P<letter>[a-z]|[ivx]{1,4})[.)\]][*_]*\s+(?P<rest>.*)$", re.IGNORECASE)
_ALPHABETS = (list("abcdefghijklmnopqrstuvwxyz"), ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"])
_FORMAT = (
    r"(?:what|how|why|when(?:\s*(?:or|/)\s*if)?|if|keywords?|statement|claim|which|is it true"
    r"|verification|which\s*(?:,?\s*or|/)\s*is it true|comparison|contrast|query|question"
    r"|factual|procedural|causal|conditional)(?:\s+(?:query|question|format))?"
)
_LABEL = re.compile(rf"^[*_\s]*[(\[]?{_FORMAT}\s*(?:[)\]]\s*[:：]?|[*_]*[:：])[*_\s]*", re.IGNORECASE)
_LABEL_BEHIND = re.compile(rf"\s[*_]*[(\[]{_FORMAT}[)\]][*_]*$", re.IGNORECASE)
# An item's number, alone or with its format, on a line above the query: "### Query 1", "**2. Keyword**".
_NUMBER_ABOVE = re.compile(
    rf"^[*_#>\s]*(?:(?:query|question)\s*#?\s*(?P<named>\d{{1,3}})|(?P<bare>\d{{1,3}})\s*[.):])\s*[-–—.):]?[*_\s]*"
    rf"[(\[]?(?:{_FORMAT})?[)\]]?[*_:：\s]*$",
    re.IGNORECASE,
)
# Between two JSON values.
_VALUE_NEXT = re.compile(r"\s*+,?\s*+[\[{]")
_ROW = re.compile(r"^\|(?P<cells>.*)\|$")
_RULE = re.compile(r"^\|[\s|:-]*-[\s|:-]*\|$")
_TAGGED = re.compile(r"<(?:query|question|q|item|li)[_\d]*(?:\s[^<>\n]{0,80})?>([^<]*+)</", re.IGNORECASE)
_TAG_BEGINS = re.compile(r"^[ \t]*<[a-z]", re.IGNORECASE | re.MULTILINE)
_PREAMBLE = re.compile(
    r"^[*_#\s]*(?:here (?:are|is)|(?:sure|certainly|of course|okay|ok)[,.!:]|below (?:are|is)|the following"
    r"|(?:search )?(?:queries|questions|paraphrases)\b.*[:：]\s*[*_]*$"
    r"|以下|下面|当然|好的|はい|다음|물론|вот\b|конечно|voici|bien sûr|إليك)",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"^(?:i'?m sorry|i am sorry|sorry,|i can(?:no|')t\b|i am unable|i'm unable|as an ai\b)", re.IGNORECASE
)
_FIELD_LABEL = re.compile(
    r"^[*_\s]*(?:(?:good|bad)\s+question|question|(?:reasoned\s+)?query|summary)[*_\s]*[:：][*_\s]*", re.IGNORECASE
)
_QUESTION_FIELD = re.compile(r"^[*_ \t]*question[*_\s]*[:：][*_\s]*", re.IGNORECASE | re.MULTILINE)
_TASK_FIELD = re.compile(r"^[*_ \t]*(task|query|language)[*_ \t]*[:：][*_ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)
# A string, or the whole rest of one that never ends: reading continues behind it, so each quote is scanned once.
_JSON_STRING = re.compile(r'"(?:[^"\\\n]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+(?P<end>"(?P<key>\s*+:)?)?')
# Or one in single quotes, as Python writes lists: it ends where a list or an object goes on.
_ANY_STRING = re.compile(
    _JSON_STRING.pattern
    + r"|(?<=[\[{,:\s])'(?P<single>(?:[^'\\\n]|\\.|'(?!\s*[,\]}:]))*+)(?P<single_end>'(?P<single_key>\s*+:)?)?"
)
_QUOTES = ('""', "''", "“”", "‘’", "„“", "«»", "「」", "『』", "``")
_OPEN_QUOTES = tuple(pair[0] for pair in _QUOTES)


@dataclass(frozen=True)
class Parsed:
    """The queries of an answer, in its order and at most as many as asked for, and what was wrong with it.

    ``problems`` counts: ``too_few``, ``too_many``, ``duplicate``, ``empty``, ``over_long``, ``stray_line`` (text
    within or after a list that belongs to no item), ``refusal``, ``no_question`` (a marked field is missing),
    ``broken_json`` (its whole strings are still read), ``broken_text`` (half a character, which no file can hold) and
    ``cut_off`` (the model did not end it itself).
    """

    queries: tuple[str, ...]
    problems: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What the model wrote on the way and is kept as provenance (SAP's summary), one per query; mostly empty."""


def parse(text: str, m: int, *, longest: int = LONGEST_QUERY) -> Parsed:
    """The queries in a raw answer to a prompt that asked for ``m`` of them."""
    problems: Counter[str] = Counter()
    text = _answer_in(text)
    queries = _from_json(text, problems)
    if queries is None:
        queries = _from_lines(text, m, problems)
    return select(queries, m, longest=longest, problems=problems)


def parse_line(text: str, m: int = 1) -> Parsed:
    """The one query of an answer that is a single line ("Good question: …"); further lines are counted as stray."""
    lines = _lines_of(text)
    problems: Counter[str] = Counter()
    if len(lines) > 1:
        problems["stray_line"] = len(lines) - 1
    return _only(lines[:1], LONGEST_QUERY, problems)


def parse_passage(text: str, m: int = 1) -> Parsed:
    """The one query of an answer that is a paragraph: its lines as one, without a label or marks around it."""
    lines = _lines_of(text)
    if len(lines) > 1 and (_is_preamble(lines[0]) or lines[0].strip("*_#").endswith(":")):
        lines = lines[1:]
    return _only(lines, LONGEST_PASSAGE, Counter())


def _answer_in(text: str) -> str:
    from cdp.llm.reader import read  # its patterns take 14 ms, where a command starts that reads no answer

    return read(text).answer


def _lines_of(text: str) -> list[str]:
    return [line.strip() for line in _answer_in(text).splitlines() if line.strip() and not _is_fence(line)]


def _only(lines: list[str], longest: int, problems: Counter[str]) -> Parsed:
    if not lines:
        return select([], 1, problems=problems)
    if _is_refusal(lines[0]):
        return select([], 1, problems=Counter({"refusal": 1}))
    return select([_FIELD_LABEL.sub("", " ".join(lines))], 1, longest=longest, problems=problems)


def parse_after_summary(text: str, m: int = 1) -> Parsed:
    """The query after "Question:" in an answer that begins with a summary; the summary is kept as a note."""
    answer = _answer_in(text)
    label = _QUESTION_FIELD.search(answer)
    if not label:
        return select([], 1, problems=Counter({"no_question": 1}))
    summary, rest = answer[: label.start()], answer[label.end() :]
    parsed = parse_line(rest.strip().partition("\n\n")[0])
    note = _note(_FIELD_LABEL.sub("", summary.strip()))
    return Parsed(parsed.queries, parsed.problems, (note,) * len(parsed.queries))


def parse_task_query(text: str, m: int = 1) -> Parsed:
    """The "Query:" of an answer with a task, a query and a language; the task is kept as a note."""
    answer = _answer_in(text).strip()
    if not _TASK_FIELD.match(answer):
        answer = f"Task: {answer}"

    fields = {name.lower(): value.strip() for name, value in dict(_TASK_FIELD.findall(answer)).items()}
    if not fields.get("query"):
        return select([], 1, problems=Counter({"no_question": 1}))

    parsed = select([fields["query"]], 1)
    return Parsed(parsed.queries, parsed.problems, (_note(fields.get("task", "")),) * len(parsed.queries))


def _note(text: str) -> str:
    """A note on one line, with a mark in place of half a character, which no file can hold."""
    return _SURROGATE.sub("\ufffd", " ".join(text.split()))


def select(
    queries: Iterable[str], m: int, *, longest: int = LONGEST_QUERY, problems: Counter[str] | None = None
) -> Parsed:
    """The first ``m`` usable ones of ``queries``, cleaned; what is not kept is counted."""
    counts: Counter[str] = Counter() if problems is None else problems
    usable: list[str] = []
    seen: set[str] = set()
    for raw in queries:
        query = " ".join(raw.split())
        if len(query) > longest + MARKS:  # before the marks around it are looked for, one pair after another
            counts["over_long"] += 1
            continue

        query = clean(query)
        if _SURROGATE.search(query):
            counts["broken_text"] += 1
        elif not any(character.isalnum() for character in query):
            counts["empty"] += 1
        elif len(query) > longest:
            counts["over_long"] += 1
        elif (key := comparison_key(query)) in seen:
            counts["duplicate"] += 1
        else:
            seen.add(key)
            usable.append(query)

    if len(usable) > m:
        counts["too_many"] += len(usable) - m
    elif len(usable) < m:
        counts["too_few"] += m - len(usable)

    return Parsed(tuple(usable[:m]), dict(counts))


def without_cut(parsed: Parsed, reading: Reading, m: int) -> Parsed:
    """Return what is whole in an answer that was cut: not the last query where the answer ends with it.

    Of bare lines none is kept, unless a thought stood before them: they may be one, opened in the prompt.
    """
    rest = " ".join(_CONTROL.sub(" ", reading.answer).split())
    kept = parsed.queries
    if not reading.thought and not _ITEM_MARK.search(reading.answer):
        kept = ()
    elif kept and rest.endswith(kept[-1]):
        kept = kept[:-1]
    problems = {**parsed.problems, "cut_off": 1, "too_few": m - len(kept)}
    return Parsed(kept, {name: n for name, n in problems.items() if n}, parsed.notes[: len(kept)])


def comparison_key(query: str) -> str:
    """Equal for queries that differ only in case, spacing or punctuation."""
    return " ".join(re.findall(r"\w+", query.casefold()))


def clean(query: str) -> str:
    """One query without the marks around it: bold, quotes, a format label, surplus white space, control characters."""
    query = " ".join(_CONTROL.sub(" ", query).split())
    before = None
    while query != before:
        before = query
        query = _LABEL_BEHIND.sub("", _LABEL.sub("", query)).strip()
        for mark in ("***", "**", "__", "*", "_"):
            if query.startswith(mark) and query.endswith(mark) and len(query) > 2 * len(mark):
                query = query[len(mark) : -len(mark)].strip()
                break

        stripped = query
        if query.startswith(_OPEN_QUOTES):
            stripped = query.rstrip(",，;；")
        for pair in _QUOTES:
            inner = stripped[1:-1]
            if len(stripped) > 2 and stripped[0] + stripped[-1] == pair and not set(pair) & set(inner):
                query = inner.strip()
                break

    return query


def _from_json(text: str, problems: Counter[str]) -> list[str] | None:
    """The strings of a JSON answer, or None where the answer is not JSON."""
    body = "\n".join(line for line in text.splitlines() if not _is_fence(line)).strip()
    decoder = json.JSONDecoder(strict=False)  # a tab within a string is no reason to lose the answer
    if body.startswith('"'):  # JSON that was encoded once more
        with suppress(ValueError, RecursionError):
            body = str(decoder.decode(body))

    for start in islice(re.finditer(r"[\[{]", body), 20):
        try:
            value, end = decoder.raw_decode(body, start.start())
        except (ValueError, RecursionError):  # lists within lists without end
            continue
        queries = _strings(value)
        if queries is not None:
            return queries + _alike(body, end, value, decoder)

    if not re.match(r"""^(?:json|python)?\s*(?:\[\s*["'{]|\{\s*["'])""", body, re.IGNORECASE):
        return None

    problems["broken_json"] += 1
    return list(_whole_strings(body))


def _alike(body: str, end: int, first: Any, decoder: json.JSONDecoder) -> list[str]:
    """The strings of the values that follow a first one in its form: an object per line, or two halves of a list."""
    queries: list[str] = []
    form = first.keys() if isinstance(first, dict) else type(first)
    while begins := _VALUE_NEXT.match(body, end):
        try:
            value, end = decoder.raw_decode(body, begins.end() - 1)
        except (ValueError, RecursionError):
            break

        if (value.keys() if isinstance(value, dict) else type(value)) != form:
            break
        queries += _strings(value) or []

    return queries


def _whole_strings(body: str) -> Iterator[str]:
    """The strings of broken JSON that end and name no field."""
    for match in _ANY_STRING.finditer(body):
        if match["end"] and not match["key"]:
            yield str(json.loads(match[0], strict=False))
        elif match["single_end"] and not match["single_key"]:
            yield match["single"].replace("\\'", "'")


def _strings(value: Any) -> list[str] | None:
    """Queries in a decoded JSON value: a list of strings or of objects, or an object that holds such a list."""
    if isinstance(value, list):
        texts = list(map(_text_of, value))
        if texts.count(None) == len(texts):
            return None
        return [text or "" for text in texts]

    if not isinstance(value, dict):
        return None
    one = _text_of(value)
    if one is not None and not isinstance(value.get("queries", value.get("questions")), list):
        return [one]
    if set(map(type, value.values())) == {str}:
        return list(value.values())

    for item in (value.get("queries"), value.get("questions"), *value.values()):
        if isinstance(item, list):
            return _strings(item) or []

    return None


def _text_of(item: Any) -> str | None:
    """The text of an item of a list, or of its field that holds the query."""
    if isinstance(item, str):
        return item
    if not isinstance(item, dict):
        return None

    for key in ("query", "question", "text"):
        if isinstance(item.get(key), str):
            return str(item[key])

    return None


def _from_lines(text: str, m: int, problems: Counter[str]) -> list[str]:
    """The items of a list written line by line: in a table, tagged, numbered, lettered, bulleted, else plain."""
    lines = []
    for line in map(str.strip, text.splitlines()):
        if line.strip("*_-=#—") and not _is_fence(line):
            lines.append(line)

    if len(lines) == 1 and m > 1:
        lines = _split_inline(lines[0])
    if not lines:
        return []

    if _is_refusal(lines[0]):
        problems["refusal"] += 1
        return []

    if rows := _of_table(lines):
        return rows
    if _TAG_BEGINS.search(text) and (tagged := _TAGGED.findall(text)):
        return tagged

    lines = _with_numbers_above(lines)
    for item, least in _LISTS:
        marked = _marked(lines, item)
        if max(number or 0 for number, _ in marked) >= least:
            return _items(marked, problems)

    return [line for line in lines if not _is_preamble(line)]


def _of_table(lines: list[str]) -> list[str]:
    """The cells of a Markdown table's widest column, without the names of the columns; empty where there is none."""
    at = next((index for index, line in enumerate(lines) if _RULE.match(line)), None)
    if at is None:
        return []

    rows = [[cell.strip() for cell in match["cells"].split("|")] for match in map(_ROW.match, lines[at + 1 :]) if match]
    wide = range(min(map(len, rows), default=0))
    column = max(wide, key=lambda index: sum(len(row[index]) for row in rows), default=0)
    return [row[column] for row in rows if wide]


def _with_numbers_above(lines: list[str]) -> list[str]:
    """The lines, with a number that stands alone on a line in front of the next one."""
    joined: list[str] = []
    waiting = False
    for line in lines:
        above = _NUMBER_ABOVE.match(line)
        if waiting and not above and not _NUMBER.match(line):
            joined[-1] += line
        else:
            joined.append(f"{above['named'] or above['bare']}. " if above else line)
        waiting = bool(above)

    return joined


# Reads a line that is an item of a list: (its number, its text). It is told the number of the item before.
ReadItem = Callable[[str, int], tuple[int, str] | None]


def _marked(lines: list[str], item: ReadItem) -> list[tuple[int | None, str]]:
    """(number, text) of each line that is an item, (None, line) for the others."""
    marked: list[tuple[int | None, str]] = []
    previous = 0
    for line in lines:
        found = item(line, previous)
        previous = found[0] if found else previous
        marked.append(found or (None, line))

    return marked


def _lettered(alphabet: list[str], line: str, previous: int) -> tuple[int, str] | None:
    """Read a line that goes on a list "a. … b. …" or "i. … ii. …"."""
    match = _LETTER.match(line)
    if match and match["letter"].lower() == alphabet[min(previous, len(alphabet) - 1)]:
        return previous + 1, match["rest"]
    return None


def _bulleted(line: str, _: int) -> tuple[int, str] | None:
    match = _BULLET.match(line)
    return (1, match["rest"]) if match else None


def _split_inline(line: str) -> list[str]:
    """One line "… 2. … 3. …" as one line per item, as long as the numbers count upwards."""
    pieces: list[str] = []
    line = " ".join(line.split())
    start, expected = 0, 2
    for match in _INLINE_NUMBER.finditer(line):
        if int(match[1]) == expected:
            pieces.append(line[start : match.start()])
            start, expected = match.end(), expected + 1
    return [*pieces, line[start:]]


def _numbered(line: str, previous: int) -> tuple[int, str] | None:
    """Read a line with a number: "7.", "(7)" or "⑦".

    It counts only where it continues the list (or restarts it at 1), so "24: the last season" stays a query.
    """
    match = _NUMBER.match(line)
    if match is None:
        return None

    number = int(match["enclosed"] or match["open"] or unicodedata.numeric(match["ringed"]))
    follows = number == 1 or previous <= number <= previous + 5
    return (number, match["rest"]) if follows and number > 0 else None


# What tells the items of a list, and the number that the last of them has at least: one letter is none.
_LISTS: list[tuple[ReadItem, int]] = [
    (_numbered, 1), *((partial(_lettered, alphabet), 2) for alphabet in _ALPHABETS), (_bulleted, 1),
]  # fmt: skip


def _items(marked: list[tuple[int | None, str]], problems: Counter[str]) -> list[str]:
    """The queries of a list. Lines before it are its preamble, unless the list goes on from an unnumbered "1."."""
    first = next(index for index, (number, _) in enumerate(marked) if number is not None)
    queries: list[str] = []
    head = [line for _, line in marked[:first] if not _is_preamble(line)]
    question = bool(head) and head[-1].rstrip("*\"' ").endswith(("?", "？", "؟"))
    if head and (marked[first][0] == 2 or (marked[first][0] == 1 and question)):
        queries.append(head.pop())
    items = [line for number, line in marked[first:] if number is not None]
    if stray := len(head) + len(marked) - first - len(items):
        problems["stray_line"] += stray
    return [*queries, *items]


def _is_refusal(line: str) -> bool:
    from cdp.query_sets.nonsense import refuses  # and this one's

    return bool(_REFUSAL.match(line.replace("’", "'"))) or refuses(line)


def _is_fence(line: str) -> bool:
    return bool(_FENCE.fullmatch(line.strip()))


def _is_preamble(line: str) -> bool:
    return bool(_PREAMBLE.match(line)) or line.rstrip("*_ ").endswith((":", "："))
