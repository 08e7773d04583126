"""The ``openai`` generator: any endpoint that speaks the OpenAI chat protocol (OpenAI, vLLM, Ollama, llama.cpp …).

What is asked, what is tried again and what ends a run; ``endpoint`` sends a request, ``completions`` reads its answer.
Never more than ``concurrency`` requests are on their way to one address; a few more calls may be under way, so that
reading one answer does not keep the next request waiting. Each try is counted, because each may be paid for. A rate
limit holds back all requests to that address until its Retry-After is over. The API key lives in this object and its
clients only; it is cut out of every message that comes from the endpoint.
"""

from __future__ import annotations

import math
import random
import threading
import time
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ProviderError, RefusedError
from cdp.base.records import Document
from cdp.base.redaction import CUT, without_secrets
from cdp.base.worker import stop_grace_s
from cdp.llm.address import NO_KEY, address, resolve
from cdp.synthesis.generators.addresses import LONGEST_WAIT_S, Address, Addresses
from cdp.synthesis.generators.base import Answer, Cancelled, GeneratorType, RequestError, Usage, usual_usage
from cdp.synthesis.methods.base import Method, Sampling, asking_for_json

if TYPE_CHECKING:
    import openai

    from cdp.synthesis.models.endpoint import NoAnswer

MOST_CALLS = 1024
"""Each is a thread; a process reads answers no faster with more."""

_REPLACEMENTS = {"max_tokens": "max_completion_tokens", "temperature": None, "top_p": None, "stop": None, "seed": None,
                 "logprobs": None}  # fmt: skip
"""What a model may not take, and what it takes in its place."""

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
"""What an answer must look like; how many queries is said in the prompt, since not every endpoint takes a count."""

_SCHEMA_WORDS = ("response_format", "json_schema", "response format", "guided", "structured output")
"""What an endpoint that takes no schema speaks of when it refuses one."""

SLOWER = "Lower concurrency, raise retries, or resume the job later."
NOT_CHAT = "Check that the address is that of a chat endpoint (often it ends in /v1)."

FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 30.0

BELIEVED_RETRY_AFTER_S = 7 * 86_400.0
"""More than that (``inf``, the year 9999) is a mistake of the endpoint's: the request is tried again as without it."""


class OpenAIGenerator:
    """Requests to one model, at one address or several, with the settings of a ``SynthesisConfig``."""

    name = "openai"
    is_llm = True

    def __init__(self, config: SynthesisConfig, api_key: str = "") -> None:
        endpoint = resolve(config.base_url, api_key)
        from cdp.synthesis.models.endpoint import Endpoint

        self.model = config.model_name
        at_once = config.concurrency
        self.concurrency = min(MOST_CALLS, at_once + max(2, at_once // 4))
        self._config = config
        self._key = endpoint.key
        connections = config.concurrency + 8
        self._addresses = Addresses(
            [
                Address(
                    endpoint.url,
                    Endpoint(endpoint.url, endpoint.key, timeout_s=config.timeout, connections=connections),
                )
            ],
            at_once=config.concurrency,
        )
        self._cancelled = threading.Event()
        self._renamed: dict[str, str | None] = {}
        self._by_schema = config.output != "list"

    def __repr__(self) -> str:
        return f"OpenAIGenerator({self.model!r} at {str(self._addresses)!r})"

    @property
    def parameters(self) -> dict[str, object]:
        return parameters(self._config)

    def cancel(self) -> None:
        """No further request; those on their way are waited for, as long as a stop may take, and their answers kept."""
        self._cancelled.set()
        self._addresses.cancel(max(0.0, 0.8 * stop_grace_s() - 1.0))

    def prepare(self) -> None:
        """Nothing to load."""

    def generate(
        self, prompt: str, document: Document, method: Method, m: int, *, sample: int = 0, query: str = ""
    ) -> Answer:
        from openai import APIStatusError

        from cdp.synthesis.models.endpoint import Abandoned, NoAnswer, Unreachable

        usual = usual_usage(prompt, method, m)
        lost = Usage()
        requests = 0
        address = None
        while True:
            try:
                address = self._addresses.take(failed=address)
            except Cancelled:
                raise Cancelled(lost) from None
            requests += 1
            try:
                answer = self._request(address, prompt, m, method.sampling_for(m, sample), usual)
            except APIStatusError as error:
                self._addresses.answered(address)
                wait = self._after_status(address, error, requests, lost)
            except NoAnswer as problem:
                if isinstance(problem, Unreachable):
                    if self._addresses.leave_out(address, self._without_key(str(problem))):
                        requests -= 1  # nothing was sent, and another address is asked
                        continue
                else:
                    self._addresses.answered(address)
                    lost += Usage(usual.input_tokens, usual.output_tokens, estimated=1, unanswered=1)
                if isinstance(problem, Abandoned):
                    raise Cancelled(lost) from None
                wait = self._after_nothing(address, problem, requests, lost)
            except RequestError as error:
                error.usage += lost
                raise
            else:
                return replace(answer, usage=answer.usage + lost)
            if wait and self._cancelled.wait(wait):
                raise Cancelled(lost)

    def _request(self, address: Address, prompt: str, m: int, sampling: Sampling, usual: Usage) -> Answer:
        """The answer to one request; RequestError for one that came and cannot be used."""
        from cdp.synthesis.models.completions import KEPT_RAW, Malformed, paid_for, read_completion

        try:
            arguments = request_body(self._config, prompt, m, sampling, by_schema=self._by_schema)
            for name, other in dict(self._renamed).items():
                value = arguments.pop(name, None)
                if other is not None:
                    arguments[other] = value
            data = address.endpoint.post({"model": self.model, **arguments})
        finally:
            self._addresses.release(address)
        self._addresses.answered(address)
        try:
            answer = read_completion(data, usual)
        except Malformed as problem:
            raise RequestError(
                f"The answer of {address.url} cannot be used: {self._without_key(str(problem))}.",
                hint=problem.hint or ("" if problem.own else NOT_CHAT),
                exhausted=not problem.own,
                usage=paid_for(data, usual),
                raw=self._without_key(data[:KEPT_RAW].decode("utf-8", "replace")),
            ) from None
        return answer if answer.model else replace(answer, model=self.model)

    def _after_nothing(self, address: Address, problem: NoAnswer, requests: int, lost: Usage) -> float:
        """Seconds until the next try after a request without a whole answer; raises where there is none."""
        from cdp.synthesis.models.endpoint import Late, Unreadable

        if none_reached := self._addresses.none_reached():  # most likely the address is wrong: say so at once
            raise ProviderError(none_reached, hint="Check the address and whether the server runs.")
        if isinstance(problem, Unreadable):
            raise RequestError(
                f"The answer of {address.url} cannot be used: {problem}.", hint=NOT_CHAT, exhausted=True, usage=lost
            )
        if requests <= self._config.retries:
            return self._backoff(requests)
        times = f", {requests} times in a row." if requests > 1 else "."
        if isinstance(problem, Late):
            message = f"{address.url} gave no answer within {self._config.timeout:g} s{times}"
            hint = "Raise timeout, or lower concurrency if the endpoint is overloaded."
        else:
            message = f"The connection to {address.url} failed ({self._without_key(str(problem))}){times}"
            hint = "Check whether the server still runs, and resume the job then."
        raise RequestError(message, hint=hint, exhausted=True, usage=lost)

    def _after_status(self, address: Address, error: openai.APIStatusError, requests: int, lost: Usage) -> float:
        """Seconds until the next try after an error status; raises where another try cannot help."""
        try:
            return self._wait_after(address, error, requests)
        except RefusedError:
            self.cancel()  # every further request would be refused too
            raise
        except RequestError as refused:
            refused.usage += lost
            raise

    def _wait_after(self, address: Address, error: openai.APIStatusError, requests: int) -> float:
        tries_left = self._config.retries - (requests - 1)
        status = error.status_code
        if status == 401:  # its words often hold part of the key
            raise RefusedError(
                f"{address.url} refused the API key (401).", hint="Check the key and what it may be used for."
            ) from None
        if status == 403:
            raise RefusedError(
                f"{address.url} refused access (403: {self._said(error)}).",
                hint="Check what the key may be used for.",
            ) from None
        if status == 404:
            raise RefusedError(
                f"{address.url} has no model {self.model!r} (404: {self._said(error)}).",
                hint="Check the model's name and that the address ends where the endpoint's does (often /v1).",
            ) from None
        if status == 402 or (status == 429 and error.code == "insufficient_quota"):
            raise RefusedError(f"The account's credit is used up ({status}: {self._said(error)}).") from None
        if status in (400, 422) and requests <= 4 and self._rename(error):
            return 0.0
        if status not in (408, 409, 429) and status < 500:
            raise RequestError(
                f"The endpoint refused the request ({status}: {self._said(error)}).", raw=self._said(error)
            ) from None
        if tries_left <= 0:
            raise RequestError(
                f"{address.url} is still failing after {requests} {'try' if requests == 1 else 'tries'} "
                f"({status}: {self._said(error)}).",
                hint=SLOWER if status == 429 else "Try again later; what is done stays done.",
                exhausted=True,
            ) from None
        wait = retry_after(error.response.headers)
        if wait is None:
            return self._backoff(requests)
        if status not in (429, 503) and wait <= LONGEST_WAIT_S:  # of this request alone
            return wait
        self._addresses.close(address, wait)
        if not self._addresses.worth_waiting():
            raise ProviderError(
                f"The endpoint asks to come back in {wait:.0f} s ({status}).", hint="Resume the job then."
            ) from None
        return 0.0

    def _rename(self, error: openai.APIStatusError) -> bool:
        """Learn from a refusal, once each, what this model takes: newer ones take ``max_completion_tokens`` and no
        temperature, older endpoints no schema.
        """
        complaint = f"{error.param or ''} {self._said(error)}".lower()
        if self._config.output == "auto" and any(word in complaint for word in _SCHEMA_WORDS):
            self._by_schema = False
            return True
        if "unsupported" not in complaint and "not support" not in complaint and "unsupported" not in str(error.code):
            return False
        for name, other in _REPLACEMENTS.items():
            if name in complaint and name not in self._renamed:
                self._renamed[name] = other
                return True
            if name in complaint and name == error.param:
                return True
        return False

    @staticmethod
    def _backoff(requests: int) -> float:
        """Doubling with full jitter, so that refused requests do not come back together."""
        longest = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** (requests - 1))
        return longest * random.uniform(0.5, 1.0)

    def _said(self, error: openai.APIStatusError) -> str:
        """The endpoint's own words, short, on one line, and without the key."""
        body = error.body
        message = body.get("message") if isinstance(body, dict) else None
        text = str(message or error.message)[:2000].encode("utf-8", "replace").decode("utf-8")
        return self._without_key(" ".join(text.split()))[:200].rstrip(".")

    def _without_key(self, text: str) -> str:
        return without_secrets(text.replace(self._key, CUT) if self._key != NO_KEY else text)


def parameters(config: SynthesisConfig) -> dict[str, object]:
    """What an answer depends on besides prompt and model, unless its method fixes it."""
    return {
        "base_url": address(config.base_url),
        "temperature": config.temperature,
        "max_output_tokens": config.max_output_tokens,
        "output": config.output,
        **({"logprobs": True} if config.logprobs else {}),
    }


def request_body(
    config: SynthesisConfig, prompt: str, m: int, sampling: Sampling, *, by_schema: bool = False
) -> dict[str, Any]:
    """The body of a chat request, without the model. ``by_schema`` asks for JSON where the prompt ends in a list."""
    fixed = sampling.to_dict()
    json_prompt = asking_for_json(prompt, m) if by_schema else None
    return {
        "messages": [{"role": "user", "content": (json_prompt or prompt).encode("utf-8", "replace").decode("utf-8")}],
        **({"response_format": SCHEMA} if json_prompt else {}),
        "temperature": fixed.pop("temperature", config.temperature),
        "max_tokens": fixed.pop("max_output_tokens", config.max_output_tokens),
        **({"logprobs": True} if config.logprobs else {}),
        **fixed,
    }


def retry_after(headers: Any) -> float | None:
    """Seconds named by ``retry-after-ms`` or ``Retry-After`` (a number or a date); None where none can be believed."""
    try:
        milliseconds = headers.get("retry-after-ms")
        if milliseconds is not None:
            return _believable(float(milliseconds) / 1000)
        value = headers.get("retry-after")
        if value is None:
            return None
        try:
            return _believable(float(value))
        except ValueError:
            return _believable(max(0.0, parsedate_to_datetime(value).timestamp() - time.time()))
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


def _believable(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) and 0 <= seconds <= BELIEVED_RETRY_AFTER_S else None


GENERATOR = GeneratorType(
    "openai",
    "LLM endpoint",
    "Any endpoint that speaks the OpenAI chat protocol",
    OpenAIGenerator,
    model="gpt-4o-mini",
    endpoint=True,
    order=30,
)
