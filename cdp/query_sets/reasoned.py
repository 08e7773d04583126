"""Imported rows of a query q and its reasoned form q′: two query sets, the second of which names its queries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cdp.base.errors import InputError
from cdp.base.workspace import read_jsonl
from cdp.corpus.checks import storable


def storable_forms(texts: Iterable[str]) -> list[str]:
    """Reasoned forms as they are stored, in one line each; empty where one cannot be stored."""
    return ["" if storable(text)[1] else text for text in (" ".join(text.split()) for text in texts)]


def merged(lines: Iterable[Mapping[str, Any]], distinct: Iterable[str]) -> list[str]:
    """The reasoned form of each distinct query of one document: the first that a row has for it."""
    forms: dict[str, str] = {}
    for line in lines:
        for query, form in zip(line["queries"], line.get("reasoned", ()), strict=False):
            forms[query] = forms.get(query) or form
    return [forms.get(query, "") for query in distinct]


def split(path: Path, target: Path, field: str) -> int:
    """Move the reasoned forms out of the lines of ``path`` into lines of their own in ``target``, each with the
    queries that they belong to (``sources``). The number of queries that have none; InputError where all have none."""
    target.parent.mkdir()
    plain = path.with_name(f".{path.name}.plain")
    missing = written = 0
    with open(plain, "w", encoding="utf-8") as out, open(target, "w", encoding="utf-8") as reasoned:
        for line in read_jsonl(path):
            forms = line.pop("reasoned", None) or [""] * len(line["queries"])
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            pairs = [(query, form) for query, form in zip(line["queries"], forms, strict=True) if form]
            missing += len(forms) - len(pairs)
            if pairs:
                written += len(pairs)
                sources, texts = map(list, zip(*pairs, strict=True))
                own = {"document_id": line["document_id"], "position": line["position"]}
                reasoned.write(json.dumps({**own, "queries": texts, "sources": sources}, ensure_ascii=False) + "\n")
    if not written:
        raise InputError(
            f"No row has a reasoned form in the field {field}.", hint="Leave reasoning_field empty, or name another."
        )
    plain.replace(path)
    return missing
