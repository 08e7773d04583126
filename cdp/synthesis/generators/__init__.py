"""What writes queries, one module each. Adding a generator is adding a file that declares a ``GeneratorType``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cdp.base.config import SynthesisConfig
from cdp.base.records import Document
from cdp.base.registry import Registered, Registry
from cdp.base.text import estimate_tokens
from cdp.llm.answers import Answer, Usage
from cdp.synthesis.methods import METHODS, Method


class Generator(ABC):
    """A source of queries. Implementations are safe to call from several threads at once.

    ``model`` is what the answers come from, as it is recorded: the model's name at its endpoint, or the generator
    itself. ``concurrency`` calls may be under way at once; 1 where a call is computing and not waiting. Of one that
    ``is_llm`` an answer costs something: it is kept in the cache, and asked for once more where malformed.
    """

    name: str
    model: str
    concurrency: int = 1
    is_llm: bool = False

    @property
    def parameters(self) -> dict[str, object]:
        """Everything besides prompt and model that an answer depends on."""
        return {}

    @property
    def unsent(self) -> tuple[str, ...]:
        """The parameters that the model does not take, as far as is known: they are not sent."""
        return ()

    def prepare(self) -> None:  # noqa: B027  (most load nothing)
        """Load what it needs, once and before the first call; may take minutes, and raises ModelError."""

    def remember(self, folder: Path) -> None:  # noqa: B027  (most ask no server)
        """Keep in a job's folder what the server turns out not to take, and read what an earlier attempt learnt."""

    @abstractmethod
    def generate(
        self, prompt: str, document: Document, method: Method, m: int, *, sample: int = 0, query: str = ""
    ) -> Answer:
        """One answer. Raises RequestError if this request failed for good, ProviderError if every one would.

        ``query`` is the one that the prompt is about, for a method that works from existing queries.
        """

    def cancel(self) -> None:  # noqa: B027  (most wait for nothing)
        """Give up waiting: calls under way end soon, with Cancelled unless their answer is already there."""


@dataclass(frozen=True)
class GeneratorType(Registered):
    """One kind of generator: its facts, and ``make(settings, API key)``, which loads nothing heavy yet.

    One with ``endpoint`` sends requests to ``base_url``, which may charge for them; a ``local`` one loads a model and
    runs on a device. ``model`` is what either asks where no model is named. ``reads`` are the settings that it uses
    beyond those of the run; None: any.
    """

    make: Callable[[SynthesisConfig, str], Generator]
    model: str = ""
    endpoint: bool = False
    local: bool = False
    reads: frozenset[str] | None = None

    @property
    def is_llm(self) -> bool:
        """Return True if a language model answers."""
        return self.endpoint or self.local


def usual_usage(prompt: str, method: Method, m: int) -> Usage:
    """What a request with this prompt consumes as a rule, where none was counted; with Q/Doc ``m``."""
    n = 1 if method.one_per_call or method.from_queries else m
    return Usage(estimate_tokens(prompt), round(n * method.tokens_per_query), 1)


GENERATORS: Registry[GeneratorType] = Registry("generator", GeneratorType, __name__)


def make_generator(config: SynthesisConfig, *, api_key: str = "") -> Generator:
    """The generator that ``config`` names, or the one that its method needs instead of any.

    ``api_key`` wins over the environment; it is never stored. Nothing heavy is loaded here, see ``Generator.prepare``.
    """
    method = METHODS.get(config.method)
    own = method.generator if method else ""
    return GENERATORS.named(own if own in GENERATORS else config.endpoint.generator).make(config, api_key)


# A plug-in that is a generator needs Answer and Usage.
__all__ = ["GENERATORS", "Answer", "Generator", "GeneratorType", "Usage", "make_generator"]
