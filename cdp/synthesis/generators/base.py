"""What writes queries: one protocol for an LLM endpoint, recorded answers and rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from cdp.errors import ProviderError
from cdp.records import Document
from cdp.synthesis.methods.base import Method


@dataclass(frozen=True)
class Usage:
    """What one or several requests consumed. Tokens as the endpoint counts them, 0 where it does not say."""

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.requests + other.requests,
        )

    def to_dict(self) -> dict[str, int]:
        return {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens, "requests": self.requests}


@dataclass(frozen=True)
class Answer:
    """What a generator gave for one document: a raw ``text`` to be parsed, or the ``queries`` themselves.

    ``finish_reason`` is the endpoint's ("length" means that the answer was cut off).
    """

    text: str = ""
    queries: tuple[str, ...] | None = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    finish_reason: str = "stop"


class Generator(Protocol):
    """A source of queries. Implementations are safe to call from several threads at once."""

    name: str
    model: str
    """What the answers come from, as it is recorded: the model's name at its endpoint, or the generator itself."""

    concurrency: int
    """Calls that may be under way at once; 1 where a call is computing and not waiting."""

    is_llm: bool
    """Whether an answer costs something: it is then kept in the cache, and asked for once more where malformed."""

    @property
    def parameters(self) -> dict[str, object]:
        """Everything besides prompt and model that an answer depends on."""
        ...

    def prepare(self) -> None:
        """Load what it needs, once and before the first call; may take minutes, and raises ModelError."""
        ...

    def generate(
        self, prompt: str, document: Document, method: Method, m: int, *, sample: int = 0, query: str = ""
    ) -> Answer:
        """One answer. Raises RequestError if this request failed for good, ProviderError if every one would.

        ``query`` is the one that the prompt is about, for a method that works from existing queries.
        """
        ...

    def cancel(self) -> None:
        """Give up waiting: calls under way end soon, with Cancelled unless their answer is already there."""
        ...


class RequestError(ProviderError):
    """One request failed for good (refused content, too long, retries used up); others may well succeed.

    ``exhausted`` tells that it was the endpoint that kept failing and not this request that is impossible.
    """

    def __init__(self, message: str, *, hint: str = "", exhausted: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.exhausted = exhausted


class Cancelled(Exception):  # noqa: N818 — not an error: the run was asked to stop
    """A request was given up because the run stops; nothing is known about its document."""
