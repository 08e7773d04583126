"""What a synthesis method is: a prompt and how its answers are to be read."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["zero-shot", "few-shot", "no-llm"]

_FIELD = re.compile(r"\{(document|M)\}")
_FRAME_MARK = re.compile(r"<(?=\s*/?\s*document\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Method:
    """One way of writing queries for a document.

    ``template`` holds ``{document}`` and ``{M}``; ``order`` is its place among the methods shown.
    """

    name: str
    title: str
    help: str
    template: str
    kind: Kind = "zero-shot"
    order: int = 100

    @cached_property
    def prompt_hash(self) -> str:
        """Hex SHA-256 of the template: the same hash means the same prompt, whatever the document."""
        return hashlib.sha256(self.template.encode("utf-8")).hexdigest()

    def render(self, document: str, m: int) -> str:
        """The prompt for one document and M queries. See ``fill``."""
        return fill(self.template, document, m)


def fill(template: str, document: str, m: int) -> str:
    """``template`` with its fields filled in one pass, so that braces in the document stay what they are.

    The document cannot leave its frame: the ``<`` of every ``<document>`` or ``</document>`` inside it becomes ``‹``.
    """
    values = {"document": neutralise(document), "M": str(m)}
    return _FIELD.sub(lambda match: values[match[1]], template)


def neutralise(document: str) -> str:
    """A document's text with any frame marks in it made harmless; all other text is untouched."""
    return _FRAME_MARK.sub("‹", document)
