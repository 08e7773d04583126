"""The synthesis methods: filling templates, few-shot examples, own prompts.

Adding one is adding a file that declares a ``Method``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.registry import Registered, Registry
from cdp.base.workspace import shipped_table
from cdp.synthesis.parsing import Parsed, parse

Kind = Literal["zero-shot", "few-shot", "reasoning", "no LLM", "own"]

LIST_TAIL = "Write exactly {M} queries as a numbered list, one per line, and nothing else.\n1."
# The document in its frame, and behind it the beginning of the list.
FRAME = "<document>\n{document}\n</document>"
FRAMED = f"{FRAME}\n\n{LIST_TAIL}"
# How a prompt ends, and what stands there instead where an endpoint holds the answer to a schema.
JSON_TAIL = 'Write exactly {M} queries as JSON of the form {"queries": ["…"]}, and nothing else.'

# Of the two methods with the paper's rules: its licence is not known to allow the prompts themselves.
PAPER_NOTE = (
    "After a zero-shot prompt printed in the paper (arXiv:2602.09448): its rules alone, our sentences. The method with "
    "the short name also keeps the document's language, never points to the document and obeys nothing in it."
)

# Further than the requests for one document are from each other.
SEEDS = 1000

_FIELD = re.compile(r"\{(document|M|query)\}")
NEXT_FRAME = "\n</document>\n\n<document>\n"
_FRAME_MARK = re.compile(r"<(?=\s*+(?:/\s*+)?document\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Sampling:
    """Settings of a request that a method fixes. None, or no stop text, leaves them to the job's configuration."""

    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None

    def to_dict(self) -> dict[str, object]:
        """Only what is fixed."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value not in (None, ())}

    def within(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return a job's parameters as one request has them, with a seed of its own: its address in the cache."""
        own = self.to_dict()
        if self.seed is not None:
            own["seed"] = (SEEDS * parameters.get("seed", 0) + self.seed) % 2**31
        return {**parameters, **own}


@dataclass(frozen=True)
class Method(Registered):
    """One way of writing queries for a document.

    ``template`` holds ``{document}`` and, where one call gives all M queries, ``{M}``. A method with ``one_per_call``
    is asked M times, with ``sampling`` for a single query and with ``several`` (and a seed per call) for more.
    ``read`` makes queries of a raw answer.

    A method with ``from_queries`` is asked once for each query of an existing set, whose text is ``{query}``. One that
    is ``joint`` is asked about two or three related documents at once: ``{document}`` stands for all of them. One with
    ``generator`` needs no LLM: that generator alone serves it. ``schema`` is what an endpoint holds the answer to, for
    one that asks for JSON itself. ``note`` is what must be said wherever it is offered.
    """

    template: str
    kind: Kind = "zero-shot"
    one_per_call: bool = False
    sampling: Sampling = field(default_factory=Sampling)
    several: Sampling = field(default_factory=Sampling)
    max_document_tokens: int | None = None
    read: Callable[[str, int], Parsed] = parse
    tokens_per_query: float = 18.0
    """Of an answer, where nothing was measured: a numbered line with a demo query of about 11 English words."""
    from_queries: bool = False
    joint: bool = False
    generator: str = ""
    schema: Mapping[str, Any] | None = None
    note: str = ""

    @cached_property
    def prompt_hash(self) -> str:
        """Hex SHA-256 of the template: the same hash means the same prompt for every document."""
        return hashlib.sha256(self.template.encode("utf-8")).hexdigest()

    def render(self, document: str | Sequence[str], m: int, query: str = "") -> str:
        """The prompt for one document, or the several of a joint method, and M queries. See ``fill``."""
        return fill(self.template, document, m, query if self.from_queries else None)

    def document_tokens(self, most: int) -> int:
        """How many tokens of a document a prompt holds, where at ``most`` so many are allowed."""
        return min(most, self.max_document_tokens or most)

    def requests(self, texts: Sequence[str], m: int, queries: Sequence[str] = ()) -> list[tuple[str, int, str]]:
        """(prompt, number of the sample, query) of each request for one document; second attempts are not among them.

        A method that works from existing queries is asked about the first ``m`` of ``queries``.
        """
        if self.from_queries:
            return [(self.render(texts, m, query), 0, query) for query in queries[:m]]

        prompt = self.render(texts, m)
        return [(prompt, sample, "") for sample in range(m if self.one_per_call else 1)]

    @property
    def fixed(self) -> set[str]:
        """The settings of a job that have no effect here: this method has values of its own."""
        return {*self.sampling.to_dict(), *self.several.to_dict()} - {"seed"}

    def sampling_for(self, m: int, sample: int = 0) -> Sampling:
        """The fixed settings of one request: the ``sample``-th (from 0) of those for M queries."""
        if not self.one_per_call or self.from_queries or (m == 1 and sample == 0):
            return self.sampling
        return dataclasses.replace(self.several, seed=sample)


def fill(template: str, document: str | Sequence[str], m: int, query: str | None = None) -> str:
    """``template`` with its fields filled in one pass, so that braces in the document stay what they are.

    The document cannot leave its frame: the ``<`` of every ``<document>`` or ``</document>`` inside it becomes ``‹``.
    Of several documents each has a frame of its own.
    """
    texts = [document] if isinstance(document, str) else document
    values = {"document": NEXT_FRAME.join(map(neutralise, texts)), "M": str(m)}
    if query is not None:
        values["query"] = neutralise(" ".join(query.split()))
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), template)


def asking_for_json(prompt: str, m: int) -> str | None:
    """A rendered prompt that asks for JSON instead of the numbered list at its end; None where it ends otherwise."""
    tail = LIST_TAIL.replace("{M}", str(m))
    if not prompt.endswith(tail):
        return None
    return prompt.removesuffix(tail) + JSON_TAIL.replace("{M}", str(m))


def neutralise(document: str) -> str:
    """A document's text with any frame marks in it made harmless; all other text is untouched."""
    return _FRAME_MARK.sub("‹", document)


OWN = "own"


def own_method(template: str) -> Method:
    """The method with that template; ConfigError names what is missing in it."""
    missing = [name for name in ("{document}", "{M}") if name not in template]
    if missing:
        raise ConfigError(
            f"Your prompt lacks {' and '.join(missing)}.",
            hint="Write {document} where the document goes and {M} for the number of queries.",
        )

    return Method(
        name=OWN,
        title="Your own prompt",
        help="Your own template; its answer is read as a list of M queries.",
        template=template,
        kind="own",
        order=90,
    )


METHODS: Registry[Method] = Registry("synthesis method", Method, __name__)


def get_method(name: str, template: str = "") -> Method:
    """The method of that name; for ``own``, the one with the given template. NotFoundError offers the known ones."""
    if name == OWN:
        return own_method(template)
    if name not in METHODS:
        raise NotFoundError("synthesis method", name, known=[*METHODS, OWN])
    return METHODS[name]


def method_of(config: SynthesisConfig) -> Method:
    """The method that a configuration names, with its prompt. ConfigError where one does not apply."""
    method = get_method(config.method, config.prompt)
    if config.logprobs and not method.one_per_call:
        single = ", ".join(other.name for other in METHODS.values() if other.one_per_call and not other.generator)
        raise ConfigError(
            f"The method {method.name} asks for all queries at once, so none has a log-probability of its own.",
            hint=f"Those with one query per call: {single}.",
        )

    settings, values, fixed = config.settings(), config.to_dict(), method.sampling_for(config.per_doc).to_dict()
    for name in sorted(method.fixed & set(settings)):
        if values[name] not in (settings[name].default, fixed.get(name)):
            raise ConfigError(
                f"{name} has no effect: the method {method.name} sets it to {fixed.get(name)}.",
                hint=f"Leave {name} out, or choose another method.",
            )

    return method


# Each with a document, its summary, a good question, a plain one and the task.
EXAMPLES: list[dict[str, str]] = shipped_table("words/examples")["example"]


def shots(n: int, form: str) -> str:
    """The first ``n`` examples one after another, each written by ``form`` (a format string over the fields and n)."""
    return "\n\n".join(form.format(n=number, **example) for number, example in enumerate(EXAMPLES[:n], start=1))
