"""The ``openai`` generator: any endpoint that speaks the OpenAI chat protocol (OpenAI, vLLM, Ollama, llama.cpp …).

Never more than ``concurrency`` requests are on their way; a few more calls may be under way, so that reading one answer
does not keep the next request waiting. The client's own retries are off, because each request is counted and paid for.
A rate limit holds back all requests of the run until the endpoint's Retry-After is over. The API key lives in this
object's client only; it is cut out of every message that comes from the endpoint.
"""

from __future__ import annotations

import os
import random
import threading
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cdp.config import SynthesisConfig
from cdp.errors import ConfigError, ProviderError, RefusedError
from cdp.records import Document
from cdp.synthesis.generators.base import Answer, Cancelled, RequestError, Usage
from cdp.synthesis.methods.base import Method, Sampling, asking_for_json

if TYPE_CHECKING:
    import openai

OPENAI_URL = "https://api.openai.com/v1"
KEY_VARIABLES = ("CDP_API_KEY", "OPENAI_API_KEY")
NO_KEY = "none"
"""Sent to endpoints of the user's own that want no key; the client insists on some text."""

_REPLACEMENTS = {"max_tokens": "max_completion_tokens", "temperature": None, "top_p": None, "stop": None, "seed": None}
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
LONGEST_RETRY_AFTER_S = 600.0
CONNECT_TIMEOUT_S = 10.0


def api_key_from_environment() -> str:
    """The API key in ``CDP_API_KEY`` or ``OPENAI_API_KEY``; empty where neither is set."""
    return next((value for name in KEY_VARIABLES if (value := os.environ.get(name, "").strip())), "")


class OpenAIGenerator:
    """Requests to one endpoint and model, with the settings of a ``SynthesisConfig``."""

    name = "openai"
    is_llm = True

    def __init__(self, config: SynthesisConfig, api_key: str = "") -> None:
        self.base_url = _checked_url(config.base_url)
        key = api_key.strip() or api_key_from_environment()
        if not key and self.base_url == OPENAI_URL:
            raise RefusedError(
                "OpenAI needs an API key and none is set.", hint="Set CDP_API_KEY or OPENAI_API_KEY, or enter the key."
            )
        import openai

        self.model = config.model_name
        self.concurrency = config.concurrency + max(2, config.concurrency // 4)
        self._slots = threading.BoundedSemaphore(config.concurrency)
        self._config = config
        self._key = key
        self._openai = openai
        limits = openai.DefaultHttpxClient(
            limits=_limits(config.concurrency), timeout=_timeout(config.timeout), follow_redirects=True
        )
        self._client = openai.OpenAI(
            api_key=key or NO_KEY,
            base_url=self.base_url,
            max_retries=0,
            timeout=_timeout(config.timeout),
            http_client=limits,
        )
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._closed_until = 0.0
        self._answered = False
        self._renamed: dict[str, str | None] = {}
        self._by_schema = config.output != "list"

    def __repr__(self) -> str:
        return f"OpenAIGenerator({self.model!r} at {self.base_url!r})"

    @property
    def parameters(self) -> dict[str, object]:
        return parameters(self._config)

    def cancel(self) -> None:
        self._cancelled.set()

    def prepare(self) -> None:
        """Nothing to load."""

    def generate(
        self, prompt: str, document: Document, method: Method, m: int, *, sample: int = 0, query: str = ""
    ) -> Answer:
        requests = 0
        while True:
            self._wait_for_turn()
            requests += 1
            try:
                answer = self._request(prompt, m, method.sampling_for(m, sample))
            except self._openai.APIError as error:
                try:
                    wait = self._wait_after(error, requests)
                except RefusedError:
                    self.cancel()  # every further request would be refused too
                    raise
                if wait is not None:
                    self._pause(wait)
                continue
            self._answered = True
            return answer

    def _request(self, prompt: str, m: int, sampling: Sampling) -> Answer:
        arguments = request_body(self._config, prompt, m, sampling, by_schema=self._by_schema)
        for name, other in dict(self._renamed).items():
            value = arguments.pop(name, None)
            if other is not None:
                arguments[other] = value
        with self._slots:
            response = self._client.chat.completions.with_raw_response.create(model=self.model, **arguments)
        try:
            completion = response.parse()
        except ValueError as error:
            raise RequestError(
                f"The answer of {self.base_url} is not JSON ({error}).", hint=NOT_CHAT, exhausted=True
            ) from None
        choices = getattr(completion, "choices", None)
        if not choices:
            raise RequestError(f"{self.base_url} answered without a choice to read.", hint=NOT_CHAT, exhausted=True)
        used = completion.usage
        usage = Usage(used.prompt_tokens, used.completion_tokens, 1) if used else Usage(requests=1)
        return Answer(
            text=choices[0].message.content or "",
            usage=usage,
            model=completion.model or self.model,
            finish_reason=choices[0].finish_reason or "stop",
        )

    def _wait_after(self, error: openai.APIError, requests: int) -> float | None:
        """Seconds to wait before the next try (None: none needed); raises where another try cannot help."""
        api = self._openai
        tries_left = self._config.retries - (requests - 1)
        if isinstance(error, api.APIConnectionError):
            unreachable = not isinstance(error, api.APITimeoutError) or "Connect" in type(error.__cause__).__name__
            if unreachable and (not self._answered or tries_left <= 0):
                raise ProviderError(
                    f"{self.base_url} cannot be reached ({self._cause(error)}).",
                    hint="Check the address and whether the server runs.",
                ) from None
            if tries_left <= 0:
                raise RequestError(
                    f"{self.base_url} gave no answer within {self._config.timeout:g} s"
                    + (f", {requests} times in a row." if requests > 1 else "."),
                    hint="Raise timeout, or lower concurrency if the endpoint is overloaded.",
                    exhausted=True,
                ) from None
            return self._backoff(requests)
        if not isinstance(error, api.APIStatusError):
            raise RequestError(f"The answer could not be read: {self._said(error)}.", exhausted=True) from None
        status = error.status_code
        if status == 401:  # its words often hold part of the key
            raise RefusedError(
                f"{self.base_url} refused the API key (401).", hint="Check the key and what it may be used for."
            ) from None
        if status == 403:
            raise RefusedError(
                f"{self.base_url} refused access (403: {self._said(error)}).",
                hint="Check what the key may be used for.",
            ) from None
        if status == 404:
            raise RefusedError(
                f"{self.base_url} has no model {self.model!r} (404: {self._said(error)}).",
                hint="Check the model's name and that the address ends where the endpoint's does (often /v1).",
            ) from None
        if status == 402 or (status == 429 and error.code == "insufficient_quota"):
            raise RefusedError(f"The account's credit is used up ({status}: {self._said(error)}).") from None
        if status in (400, 422) and requests <= 4 and self._rename(error):
            return None
        if status not in (408, 409, 429) and status < 500:
            raise RequestError(f"The endpoint refused the request ({status}: {self._said(error)}).") from None
        if tries_left <= 0:
            raise RequestError(
                f"{self.base_url} is still failing after {requests} {'try' if requests == 1 else 'tries'} "
                f"({status}: {self._said(error)}).",
                hint=SLOWER if status == 429 else "Try again later; what is done stays done.",
                exhausted=True,
            ) from None
        wait = retry_after(error.response.headers)
        if wait is None:
            return self._backoff(requests)
        if wait > LONGEST_RETRY_AFTER_S:
            raise ProviderError(
                f"The endpoint asks to come back in {wait:.0f} s ({status}).", hint="Resume the job then."
            ) from None
        if status == 429:
            with self._lock:
                self._closed_until = max(self._closed_until, time.monotonic() + wait)
        return wait

    def _rename(self, error: openai.APIStatusError) -> bool:
        """Learn from a refusal, once each, what this model takes: newer ones take ``max_completion_tokens`` and no
        temperature, older endpoints no schema.
        """
        said = f"{error.param or ''} {self._said(error)}".lower()
        if self._config.output == "auto" and any(word in said for word in _SCHEMA_WORDS):
            self._by_schema = False
            return True
        if "unsupported" not in said and "not support" not in said and "unsupported" not in (error.code or ""):
            return False
        for name, other in _REPLACEMENTS.items():
            if name in said and name not in self._renamed:
                self._renamed[name] = other
                return True
            if name in said and name == error.param:
                return True
        return False

    def _wait_for_turn(self) -> None:
        while True:
            if self._cancelled.is_set():
                raise Cancelled
            with self._lock:
                wait = self._closed_until - time.monotonic()
            if wait <= 0:
                return
            self._cancelled.wait(wait)

    def _pause(self, seconds: float) -> None:
        if self._cancelled.wait(seconds):
            raise Cancelled

    @staticmethod
    def _backoff(requests: int) -> float:
        """Doubling with full jitter, so that refused requests do not come back together."""
        longest = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** (requests - 1))
        return longest * random.uniform(0.5, 1.0)

    def _said(self, error: openai.APIError) -> str:
        """The endpoint's own words, short, on one line, and without the key."""
        body = error.body
        message = body.get("message") if isinstance(body, dict) else None
        text = " ".join(str(message or error.message).split())
        if self._key:
            text = text.replace(self._key, "[key]")
        return text[:200].rstrip(".")

    def _cause(self, error: BaseException) -> str:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        return " ".join((str(cause) or type(cause).__name__).split())[:120]


def parameters(config: SynthesisConfig) -> dict[str, object]:
    """What an answer depends on besides prompt and model, unless its method fixes it."""
    return {
        "base_url": _checked_url(config.base_url),
        "temperature": config.temperature,
        "max_output_tokens": config.max_output_tokens,
        "output": config.output,
    }


def request_body(
    config: SynthesisConfig, prompt: str, m: int, sampling: Sampling, *, by_schema: bool = False
) -> dict[str, Any]:
    """The body of a chat request, without the model. ``by_schema`` asks for JSON where the prompt ends in a list."""
    fixed = sampling.to_dict()
    json_prompt = asking_for_json(prompt, m) if by_schema else None
    return {
        "messages": [{"role": "user", "content": json_prompt or prompt}],
        **({"response_format": SCHEMA} if json_prompt else {}),
        "temperature": fixed.pop("temperature", config.temperature),
        "max_tokens": fixed.pop("max_output_tokens", config.max_output_tokens),
        **fixed,
    }


def retry_after(headers: Any) -> float | None:
    """Seconds named by ``retry-after-ms`` or ``Retry-After`` (a number or a date); None where there is none."""
    try:
        milliseconds = headers.get("retry-after-ms")
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        value = headers.get("retry-after")
        if value is None:
            return None
        try:
            return max(0.0, float(value))
        except ValueError:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _checked_url(base_url: str) -> str:
    url = base_url.strip().rstrip("/")
    if not url:
        return OPENAI_URL
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"{base_url!r} is not the address of an endpoint.", hint="For example http://localhost:8000/v1"
        )
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            "The endpoint's address must not hold a user, a password or a key: it is stored with the results.",
            hint="Set CDP_API_KEY instead.",
        )
    return url


def _timeout(seconds: float) -> Any:
    import openai

    return openai.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT_S))


def _limits(concurrency: int) -> Any:
    import httpx2

    return httpx2.Limits(max_connections=concurrency + 8, max_keepalive_connections=concurrency + 8)
