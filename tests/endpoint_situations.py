"""What servers answer instead of an answer: a table of bodies with their sources, in the shape of public reports.

Texts are shortened. ``when`` says to which requests a server answers so: a field of the body ("temperature"), a kind
of response format ("json_schema"), "texts>10"; empty: to any. Owner/repository#number is an issue at GitHub.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

JSON = {"Content-Type": "application/json"}
HTML = {"Content-Type": "text/html"}


@dataclass(frozen=True)
class Situation:
    """One answer of one server, and what is to be read in it."""

    source: str
    status: int
    body: bytes
    words: str
    refuses: str = ""
    limit: int | None = None
    retry_after: float | None = None
    inside: int = 0  # the error's own status, inside HTTP 200
    when: str = ""
    headers: dict[str, str] = field(default_factory=lambda: JSON)

    def applies(self, body: dict[str, Any]) -> bool:
        """Return True if the server answers so to a request."""
        if self.when.startswith("texts>"):
            return len(body.get("input", ())) > int(self.when.removeprefix("texts>"))
        kind = (body.get("response_format") or {}).get("type")
        return not self.when or self.when in body or self.when == kind


def _at(source: str, status: int, value: Any, words: str, **more: Any) -> Situation:
    return Situation(source, status, json.dumps(value).encode(), words, **more)


def _error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}}


SCHEMA = "response_format"
FILTERED = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
GOOGLE_WAIT = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}
PARTIAL = {"message": {"role": "assistant", "content": "what does a sourdo"}}

# The words of a refusal, in every shape.
WORDS = {
    "OpenAI": _at("OpenAI API reference", 400, _error("The prompt is refused."), "The prompt is refused."),
    "LM Studio": _at("lmstudio-ai/lmstudio-bug-tracker#169", 400, {"error": "Model unloaded."}, "Model unloaded."),
    "FastAPI": _at("fastapi docs, HTTPException", 400, {"detail": "Prompt too odd"}, "Prompt too odd"),
    "FastAPI validation": _at(
        "fastapi docs, RequestValidationError", 422,
        {"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "Field required", "input": {}}]},
        "body.messages: Field required",
    ),
    "SiliconFlow": _at(
        "apecloud/ApeRAG#716", 400, {"code": 20015, "message": "The parameter is odd.", "data": None},
        "The parameter is odd.",
    ),
    "vLLM before 0.10": _at(
        "vllm-project/vllm#6174", 400,
        {"object": "error", "message": "Prompt refused", "type": "BadRequestError", "param": None, "code": 400},
        "Prompt refused",
    ),
    "Cloudflare": _at(
        "Workers AI reference", 400, {"success": False, "errors": [{"code": 7009, "message": "Bad input"}]}, "Bad input"
    ),
    "Google": _at(
        "google-gemini/gemini-cli#6454", 400, [{"error": {"code": 400, "message": "Bad turn.", "status": "INVALID"}}],
        "Bad turn.",
    ),
    "a router with the body behind it": _at(
        "continuedev/continue#10560", 400, _error(json.dumps({"error": {"code": 400, "message": "Bad thing."}})),
        "Bad thing.",
    ),
    "OpenRouter": _at(
        "open-webui/computer#293", 400,
        {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": '{"detail": "No such"}'}}},
        "Provider returned error: No such",
    ),
    "Azure's content filter": _at(
        "compl-ai/compl-ai#20", 400,
        _error(
            FILTERED, param="prompt", code="content_filter", status=400,
            innererror={"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}},
        ),
        FILTERED,
    ),
    "plain text": Situation("nginx, haproxy", 400, b"no such thing\n", "no such thing", headers={}),
    "a web page": Situation(
        "nginx", 413, b"<html>\r\n<head><title>413 Too &lt;Large&gt;</title></head><body>nginx</body></html>",
        "a web page, “413 Too <Large>”", headers=HTML,
    ),
    "nothing": Situation("any proxy", 400, b"", "Bad Request", headers={}),
    "a redirect": Situation("any proxy", 307, b"", "Temporary Redirect", headers={}),  # one that is not followed
    "no words": _at("any server", 418, {"ok": False}, "I'm a Teapot"),
}  # fmt: skip

# What a server does not take.
REFUSED = {
    "OpenAI: max_tokens": _at(
        "OpenAI API, gpt-5", 400,
        _error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.",
            param="max_tokens", code="unsupported_parameter",
        ),
        "Unsupported parameter: 'max_tokens'", refuses="max_tokens", when="max_tokens",
    ),
    "Mistral: max_completion_tokens": _at(
        "1Panel-dev/MaxKB#2912", 400,
        {"object": "error", "code": 400, "message": "[{'type': 'extra_forbidden', 'loc': ('body', "
         "'max_completion_tokens'), 'msg': 'Extra inputs are not permitted'}]"},
        "[{'type': 'extra_forbidden'", refuses="max_completion_tokens", when="max_completion_tokens",
    ),
    "OpenAI: temperature": _at(
        "OpenAI API, gpt-5", 400,
        _error(
            "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) is supported.",
            param="temperature", code="unsupported_value",
        ),
        "Unsupported value", refuses="temperature", when="temperature",
    ),
    "LiteLLM: temperature": _at(
        "BerriAI/litellm#13781", 400,
        _error("litellm.UnsupportedParamsError: gpt-5 models don't support temperature=0.3. Only temperature=1 is."),
        "litellm.Unsupported", refuses="temperature", when="temperature",
    ),
    "Anthropic by LiteLLM: temperature": _at(
        "BerriAI/litellm#26444", 400,
        _error(
            'AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"`temperature` is '
            'deprecated for this model."}}'
        ),
        "AnthropicException", refuses="temperature", when="temperature",
    ),
    "llama.cpp: schema": _at(
        "ggml-org/llama.cpp#11847", 400,
        _error('Either "json_schema" or "grammar" can be specified, but not both'),
        "Either", refuses=SCHEMA, when="json_schema",
    ),
    "Mistral: seed": _at(
        "nomtek/mistralai_client_dart#44", 422,
        {"object": "error", "type": "invalid_request_error", "message": {"detail": [
            {"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}},
        "body.seed: Extra inputs are not permitted", refuses="seed", when="seed",
    ),
    "FastAPI: top_p": _at(
        "pydantic, extra=forbid", 422,
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "top_p"], "msg": "Extra inputs are not permitted"}]},
        "body.top_p: Extra", refuses="top_p", when="top_p",
    ),
    "Google: stop": _at(
        "Gemini API", 400, [{"error": {"code": 400, "message": 'Unknown name "stop": Cannot find field.'}}],
        "Unknown name", refuses="stop", when="stop",
    ),
    "DeepSeek: schema": _at(
        "llm-exe/llm-exe#662", 400, _error("This response_format type is unavailable now"),
        "This response_format", refuses=SCHEMA, when="json_schema",
    ),
    "LM Studio: JSON mode": _at(
        "lmstudio-ai/lmstudio-bug-tracker#169", 400,
        {"error": "'response_format.type' must be 'json_schema' or 'text'"},
        "'response_format.type'", refuses=SCHEMA, when="json_object",
    ),
    "FastAPI: schema": _at(
        "a server of one's own", 422,
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "response_format"], "msg": "Extra inputs"}]},
        "body.response_format", refuses=SCHEMA, when=SCHEMA,
    ),
    "plain text: schema": Situation(
        "a server of one's own", 400, b"guided decoding is not built in", "guided decoding", refuses=SCHEMA,
        when=SCHEMA, headers={},
    ),
    "LiteLLM: encoding_format": _at(
        "BerriAI/litellm#17150", 400,
        _error("litellm.UnsupportedParamsError: gemini does not support parameters: {'encoding_format': 'float'}"),
        "litellm.Unsupported", refuses="encoding_format", when="encoding_format",
    ),
    "DashScope: 10 texts": _at(
        "memodb-io/memobase#142", 400,
        _error(
            "<400> InternalError.Algo.InvalidParameter: Value error, batch size is invalid, it should not be larger "
            "than 10.: input.contents", code="InvalidParameter",
        ),
        "<400> InternalError", refuses="texts", limit=10, when="texts>10",
    ),
    "SiliconFlow: 25 texts": _at(
        "apecloud/ApeRAG#716", 413,
        {"code": 20042, "message": "input batch size 32 > maximum allowed batch size 25", "data": None},
        "input batch size", refuses="texts", limit=25, when="texts>25",
    ),
    "Gemini: 100 texts": _at(
        "StarTrail-org/LEANN#214", 400,
        _error("BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch"),
        "BatchEmbedContentsRequest", refuses="texts", limit=100, when="texts>100",
    ),
    "Voyage: 128 texts": _at(
        "Voyage API", 400, {"detail": "The batch size limit is 128. Your batch size is 200."},
        "The batch size limit", refuses="texts", limit=128, when="texts>128",
    ),
    "SiliconFlow: 512 tokens": _at(
        "SiliconFlow API", 413, {"code": 20042, "message": "input must have less than 512 tokens", "data": None},
        "input must", refuses="tokens", limit=512,
    ),
    "llama.cpp: 512 tokens": _at(
        "canonical/inference-snaps#344", 500,
        {"error": {"code": 500, "type": "server_error", "message": "input (783 tokens) is too large to process. "
                   "increase the physical batch size (current batch size: 512)"}},
        "input (783 tokens)", refuses="tokens", limit=512,
    ),
    "vLLM: context": _at(
        "vLLM", 400, _error("This model's maximum context length is 4096 tokens. However, you requested 5000."),
        "This model's maximum", refuses="tokens", limit=4096,
    ),
}  # fmt: skip

# No refusal of a parameter, though the words look like one.
NOT_REFUSED = {
    "Ollama: NaN": _at(
        "ollama/ollama#14657", 500, _error("failed to encode response: json: unsupported value: NaN"),
        "failed to encode",
    ),
    "a temperature out of range": _at(
        "OpenAI API", 400, _error("temperature must be at most 2", param="temperature"), "temperature must"
    ),
    "Groq: invalid JSON": _at(
        "Groq API", 400, _error("Failed to validate JSON. Please adjust your prompt.", code="json_validate_failed"),
        "Failed to validate",
    ),
    "a word of the prompt": _at(
        "any server", 400, _error("The word stop in your prompt is not supported by the filter"), "The word stop"
    ),
}  # fmt: skip

# How long to wait, in headers and bodies.
WAITS = {
    "seconds": _at("RFC 9110", 429, _error("Slow down"), "Slow", retry_after=20, headers={"Retry-After": "20"}),
    "milliseconds": _at("Azure", 429, _error("Slow"), "Slow", retry_after=1.5, headers={"retry-after-ms": "1500"}),
    "a date": _at(
        "RFC 9110", 503, _error("Later"), "Later", retry_after=30,
        headers={"Retry-After": "Thu, 01 Jan 1970 00:00:30 GMT"},
    ),
    "Google: retryDelay": _at(
        "googleapis/python-genai#2114", 429,
        [{"error": {"code": 429, "message": "Quota.", "status": "RESOURCE_EXHAUSTED", "details": [GOOGLE_WAIT]}}],
        "Quota.", retry_after=37,
    ),
    "OpenAI: in 20s": _at("OpenAI", 429, _error("Rate limit. Please try again in 20s."), "Rate", retry_after=20),
    "OpenAI: in 6ms": _at("OpenAI", 429, _error("Please try again in 6ms."), "Please", retry_after=0.006),
    "Groq: in 1m3.2s": _at(
        "OpenHands/OpenHands#4167", 429, _error("Limit 7000. Please try again in 1m3.2s. Visit"), "Limit",
        retry_after=63.2,
    ),
    "too long": _at("any", 429, _error("No"), "No", retry_after=86_400, headers={"Retry-After": "1e300"}),
    "nonsense": _at("any", 429, _error("No"), "No", headers={"Retry-After": "soon"}),
    "not a number": _at("any", 429, _error("No"), "No", headers={"Retry-After": "nan"}),
    "negative": _at("any", 429, _error("No"), "No", headers={"Retry-After": "-5"}),
}  # fmt: skip

# Errors inside HTTP 200.
INSIDE = {
    "OpenRouter: 429": _at(
        "open-webui/computer#293", 200,
        {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "rate-limited upstream"}}},
        "Provider returned error: rate-limited upstream", inside=429,
    ),
    "OpenRouter: 502": _at(
        "xyOz-dev/Saturn#43", 200, {"id": "1", "error": {"message": "Upstream broke", "code": 502}}, "Upstream broke",
        inside=502,
    ),
    "OpenRouter: in a choice": _at(
        "genkit-ai/genkit#6259", 200,
        {"choices": [{**PARTIAL, "finish_reason": "error", "error": {"code": 502, "message": "Lost"}}]}, "Lost",
        inside=502,
    ),
    "OpenRouter: finish_reason error": _at(
        "maximhq/bifrost#5425", 200, {"choices": [{**PARTIAL, "finish_reason": "error"}], "usage": None},
        "The model's provider failed within its answer", inside=502,
    ),
    "LiteLLM": _at(
        "BerriAI/litellm", 200, {"error": {"message": "litellm.RateLimitError: No", "type": "rate_limit_error"}},
        "litellm.RateLimitError: No", inside=429,
    ),
    "a gateway: a text": _at("any gateway", 200, {"error": "Prompt refused by policy"}, "Prompt refused", inside=400),
    "a gateway: overloaded": _at("any gateway", 200, {"error": "Model overloaded"}, "Model overloaded", inside=503),
    "a gateway: code as text": _at(
        "any gateway", 200, {"error": {"message": "Gone wrong", "code": "503"}}, "Gone wrong", inside=503
    ),
    "FastAPI": _at("a server of one's own", 200, {"detail": "Prompt refused"}, "Prompt refused", inside=400),
    "Google": _at(
        "Gemini API", 200, [{"error": {"code": 503, "message": "Overloaded"}}], "Overloaded", inside=503
    ),
}  # fmt: skip

# HTTP 200 that is an answer, or none of ours to explain.
NO_REFUSAL = {
    "an answer": {"choices": [{"message": {"content": "an error occurred"}, "finish_reason": "stop"}]},
    "an answer with an empty error": {"choices": [{"message": {"content": "x"}}], "error": None},
    "vectors": {"data": [{"embedding": [1.0], "index": 0}], "error": {}},
    "no choices": {"choices": []},
    "null": None,
}

SITUATIONS = {
    f"{kind}: {name}": situation
    for kind, rows in {
        "words": WORDS, "refused": REFUSED, "not refused": NOT_REFUSED, "waits": WAITS, "inside": INSIDE,
    }.items()
    for name, situation in rows.items()
}  # fmt: skip
