"""The ``openai`` generator, any endpoint of the OpenAI chat protocol: request body, JSON schema, what a model takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdp.base.config import SynthesisConfig
from cdp.base.errors import RefusedError
from cdp.base.records import Document
from cdp.base.text import encodable
from cdp.llm.address import address, resolve
from cdp.llm.answers import Answer
from cdp.llm.refusals import Learnt
from cdp.synthesis.generators import Generator, GeneratorType, usual_usage
from cdp.synthesis.methods import Method, Sampling, asking_for_json

# Each is a thread; a process reads answers no faster with more.
MAX_THREADS = 1024

# Models that think first: o1 to o4 and GPT-5 sample as they will, and count the tokens of a thought, too. GPT-5.1 and
# later take a temperature while they do not think.
REASONING = re.compile(r"(?:^|/)(?:o\d|gpt-5)(?:-(?!chat)|$)")
COUNTS_THOUGHTS = re.compile(r"(?:^|/)(?:o\d(?:-|$)|gpt-[5-9])")
NOT_SENT = ("temperature", "top_p", "stop")

# What an answer must look like; how many queries is said in the prompt, since not every endpoint takes a count.
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "queries",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"queries": {"type": "array", "items": {"type": "string"}}},
            "required": ["queries"],
            "additionalProperties": False,
        },
    },
}


class OpenAIGenerator(Generator):
    """Requests to one model at one address, with the settings of a ``SynthesisConfig``."""

    name = "openai"
    is_llm = True

    def __init__(self, config: SynthesisConfig, api_key: str = "") -> None:
        from cdp.llm.client import ChatClient

        self.model = config.endpoint.model_name
        # A few more calls than requests, so that reading one answer does not keep the next request waiting.
        self.concurrency = min(MAX_THREADS, config.endpoint.concurrency + max(2, config.endpoint.concurrency // 4))
        self._config = config
        self._client = ChatClient(
            resolve(config.endpoint.base_url, api_key), self.model,
            concurrency=config.endpoint.concurrency, timeout_s=config.endpoint.timeout, retries=config.endpoint.retries,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"OpenAIGenerator({self.model!r} at {self._client.url!r})"

    @property
    def parameters(self) -> dict[str, object]:
        return parameters(self._config)

    @property
    def unsent(self) -> tuple[str, ...]:
        return (*unsent(self._config), *self._client.refused)

    def remember(self, folder: Path) -> None:
        self._client.learnt = Learnt(self.model, self._client.url, folder / Learnt.FILE)

    def cancel(self) -> None:
        """Send no further request. Those under way may end, as long as a stop may take; their answers are kept."""
        self._client.stop()

    def generate(
        self, prompt: str, document: Document, method: Method, m: int, *, sample: int = 0, query: str = ""
    ) -> Answer:
        sampling = method.sampling_for(m, sample)
        by_schema = self._config.output != "list"
        body = request_body(self._config, prompt, m, sampling, by_schema=by_schema, schema=method.schema)
        by_list = request_body(self._config, prompt, m, sampling) if self._config.output == "auto" else None
        try:
            return self._client.complete(body, usual_usage(prompt, method, m), without_schema=by_list)
        except RefusedError:
            self.cancel()  # every further request would be refused too
            raise


def parameters(config: SynthesisConfig) -> dict[str, object]:
    """Return what an answer depends on besides prompt and model, unless its method fixes it."""
    values: dict[str, object] = {
        "base_url": address(config.endpoint.base_url),
        "temperature": config.temperature,
        "max_output_tokens": config.endpoint.max_output_tokens,
        "output": config.output,
    }
    if config.seed:  # not the seed 0: answers that were kept before seeds were sent stay valid
        values["seed"] = config.seed
    if config.logprobs:
        values["logprobs"] = True

    return values


def request_body(
    config: SynthesisConfig, prompt: str, m: int, sampling: Sampling, *, by_schema: bool = False,
    schema: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the body of a chat request, without the model; ``by_schema`` asks for JSON instead of an opened list.

    ``schema`` is the method's own, which its prompt asks for already.
    """
    sent = sampling.within(parameters(config))
    tokens = "max_completion_tokens" if COUNTS_THOUGHTS.search(config.endpoint.model_name) else "max_tokens"
    body: dict[str, Any] = {"messages": []}
    if by_schema and (asking := prompt if schema else asking_for_json(prompt, m)):
        prompt = asking
        body["response_format"] = schema or SCHEMA

    content = encodable(prompt)
    body["messages"] = [{"role": "user", "content": content}]
    body[tokens] = sent["max_output_tokens"]
    body |= {name: sent[name] for name in ("temperature", "logprobs", "top_p", "stop", "seed") if name in sent}

    return {name: value for name, value in body.items() if name not in unsent(config)}


def unsent(config: SynthesisConfig) -> tuple[str, ...]:
    """Return the parameters that this model refuses, so that none is sent: at the endpoint, or in a batch."""
    return NOT_SENT if REASONING.search(config.endpoint.model_name) else ()


GENERATOR = GeneratorType(
    "openai",
    "LLM endpoint",
    "Any endpoint that speaks the OpenAI chat protocol",
    OpenAIGenerator,
    model="gpt-4o-mini",
    endpoint=True,
    reads=frozenset(
        {"model", "base_url", "temperature", "max_output_tokens", "output", "logprobs", "seed"}
        | {"concurrency", "timeout", "retries"}
    ),
    order=30,
)
