"""Closed English word lists and verb forms, from ``data/words/english.toml``."""

from __future__ import annotations

import tomllib

from cdp.base.workspace import SHIPPED_DATA

_DATA = tomllib.loads((SHIPPED_DATA / "words" / "english.toml").read_text(encoding="utf-8"))


def _set(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].split())


DETERMINERS, PRONOUNS, PREPOSITIONS = _set("determiners"), _set("pronouns"), _set("prepositions")
AUXILIARIES, CONJUNCTIONS, ADVERBS = _set("auxiliaries"), _set("conjunctions"), _set("adverbs")
FUNCTION_WORDS = DETERMINERS | PRONOUNS | PREPOSITIONS | AUXILIARIES | _set("other_function_words")
STATES, WEAK_VERBS, ROLES, VAGUE_HEADS = _set("states"), _set("weak_verbs"), _set("roles"), _set("vague_heads")
SECTION_LABELS, CONNECTIVES, POINTING = _set("section_labels"), _set("connectives"), _set("pointing")
SPEAKERS = _set("speakers")
NOT_LAST = (DETERMINERS | PREPOSITIONS | CONJUNCTIONS | AUXILIARIES | _set("not_last")) - _set("may_be_last")
PARTICIPLES: dict[str, str] = _DATA["participles"]
INDIRECT: tuple[str, ...] = tuple(_DATA["indirect_questions"])
_VERBS: list[str] = _DATA["verbs"].split()


def _forms(entry: str) -> tuple[str, str, str]:
    """Return base, third person and past form of a verb; spelling rules give the past where the entry has none."""
    base, _, past = entry.partition("-")
    stem = base[:-1] if base.endswith("y") and base[-2] not in "aeiou" else ""
    third = f"{stem}ies" if stem else base + ("es" if base.endswith(("s", "x", "ch", "sh", "o")) else "s")
    doubled = base[-1] in "pbtmn" and base[-2] in "aeiou" and base[-3] not in "aeiou" and len(base) <= 4
    regular = f"{stem}ied" if stem else base + ("d" if base.endswith("e") else f"{base[-1]}ed" if doubled else "ed")
    return base, third, past or regular


# Base forms: finite only after a plural subject.
PLAIN_FORMS = frozenset(entry.partition("-")[0] for entry in _VERBS)

# Every known finite form of a verb that is not an auxiliary, with its base form.
BASE_FORM = {form: forms[0] for entry in _VERBS for forms in [_forms(entry)] for form in forms} | dict.fromkeys(
    ("has", "have", "had"), "have"
)
