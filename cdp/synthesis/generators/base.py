"""What writes queries: one protocol for an LLM endpoint, recorded answers and rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ProviderError
from cdp.base.records import Document
from cdp.base.registry import Registered
from cdp.synthesis.methods.base import Method
from cdp.synthesis.tokens import estimate_tokens


@dataclass(frozen=True)
class Usage:
    """What one or several requests consumed.

    Tokens are those that the endpoint counted, and estimates for ``estimated`` requests of which it told none that can
    be believed. ``requests`` brought an answer. ``unanswered`` ones were sent and never answered (a lost connection, a
    timeout, a killed process): the endpoint may charge for them, so they count as an answer of the usual length would.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    estimated: int = 0
    unanswered: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.requests + other.requests,
            self.estimated + other.estimated,
            self.unanswered + other.unanswered,
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.requests - other.requests,
            self.estimated - other.estimated,
            self.unanswered - other.unanswered,
        )

    def to_dict(self) -> dict[str, int]:
        """Tokens and requests; the rest only where there is any."""
        counts = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens, "requests": self.requests}
        rest = {"estimated": self.estimated, "unanswered": self.unanswered}
        return counts | {name: value for name, value in rest.items() if value}

    @classmethod
    def from_dict(cls, values: object) -> Usage:
        """What ``to_dict`` wrote; anything that is no count is taken for nothing."""
        if not isinstance(values, dict):
            return cls()
        counts = {name: value for name, value in values.items() if name in cls.__dataclass_fields__}
        return cls(**{name: value for name, value in counts.items() if type(value) is int and value >= 0})


@dataclass(frozen=True)
class Answer:
    """What a generator gave for one document: a raw ``text`` to be parsed, or the ``queries`` themselves.

    ``finish_reason`` is the endpoint's ("length" means that the answer was cut off). ``logprob`` is the mean natural
    log-probability of its tokens, None where it was not asked for or not told.
    """

    text: str = ""
    queries: tuple[str, ...] | None = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    finish_reason: str = "stop"
    logprob: float | None = None


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


@dataclass(frozen=True)
class GeneratorType(Registered):
    """One kind of generator: its facts, and ``make(settings, API key)``, which loads nothing heavy yet.

    One with ``endpoint`` sends requests to ``base_url``, which may charge for them; a ``local`` one loads a model and
    runs on a device. ``model`` is what either asks where no model is named.
    """

    make: Callable[[SynthesisConfig, str], Generator]
    model: str = ""
    endpoint: bool = False
    local: bool = False

    @property
    def is_llm(self) -> bool:
        """Whether a language model answers."""
        return self.endpoint or self.local


class RequestError(ProviderError):
    """One request failed for good (refused content, too long, retries used up); others may well succeed.

    ``exhausted`` tells that it was the endpoint that kept failing and not this request that is impossible. ``usage`` is
    what may have been paid all the same, ``raw`` the beginning of what came in place of an answer.
    """

    def __init__(
        self, message: str, *, hint: str = "", exhausted: bool = False, usage: Usage | None = None, raw: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.exhausted = exhausted
        self.usage = usage or Usage()
        self.raw = raw


class Cancelled(Exception):  # noqa: N818 — not an error: the run was asked to stop
    """A request was given up because the run stops; nothing is known about its document.

    ``usage`` is what may have been paid: a request that was on its way and not answered in time.
    """

    def __init__(self, usage: Usage | None = None) -> None:
        super().__init__()
        self.usage = usage or Usage()


def usual_usage(prompt: str, method: Method, m: int) -> Usage:
    """What a request with this prompt consumes as a rule, where nobody counted; with Q/Doc ``m``."""
    n = 1 if method.one_per_call or method.from_queries else m
    return Usage(estimate_tokens(prompt), round(n * method.tokens_per_query), 1)
