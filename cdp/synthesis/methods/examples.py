"""The few-shot examples of the InPars, SAP and DRAMA prompts and their form, from ``data/words/examples.toml``."""

from __future__ import annotations

import tomllib

from cdp.base.workspace import SHIPPED_DATA

# Each with a document, its summary, a good question, a plain one and the task.
EXAMPLES: list[dict[str, str]] = tomllib.loads((SHIPPED_DATA / "words" / "examples.toml").read_text("utf-8"))["example"]


def shots(n: int, form: str) -> str:
    """The first ``n`` examples one after another, each written by ``form`` (a format string over the fields and n)."""
    return "\n\n".join(form.format(n=number, **example) for number, example in enumerate(EXAMPLES[:n], start=1))
