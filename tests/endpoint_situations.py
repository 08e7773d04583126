"""What servers answer instead of an answer: a table of bodies with their sources, in the shape of public reports.

Texts are shortened. A source "seen" is a server that was asked. ``when`` says to which requests a server answers so: a
field of the body ("temperature"), a kind of response format ("json_schema"), "texts>10"; empty: to any.
Owner/repository#number is an issue at GitHub.
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
BAD, GROUP = "litellm.BadRequestError: OpenAIException", "\n\nLiteLLM: model group 'm' failed with the error above."
PLACE = '  File "/srv/app.py", line 376, in create_chat_completion'
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
    "LiteLLM": _at(
        "seen: LiteLLM 1.106.12", 400, _error(f"{BAD} - Prompt refused{GROUP}", code="400"), "Prompt refused"
    ),
    "LiteLLM with a body": _at(
        "seen: LiteLLM 1.106.12", 400, _error(f'{BAD} - {{"error": {{"message": "Bad turn."}}}}{GROUP}'), "Bad turn."
    ),
    "infinity, which repeats what was sent": _at(
        "seen: infinity-emb 0.0.78", 422,
        {"detail": [{"type": "too_long", "loc": ["body", "text", "input"], "msg": "List should have at most 9 items",
                     "input": ['{"error": "of a document"}', "x" * 100_000]}]},
        "body.text.input: List should have at most 9 items", refuses="texts", limit=9,
    ),
    "infinity: dimensions": _at(
        "seen: infinity-emb 0.0.78", 400,
        _error("<class 'MatryoshkaDimError'> -> matryoshka_dim=80 is not in a valid range.", type=None, code=400),
        "<class 'MatryoshkaDimError'> -> matryoshka_dim=80",
    ),
    "a traceback": _at(
        "seen: llama-cpp-python 0.3.36", 400,
        _error(f'Traceback (most recent call last):\n{PLACE}\n    give()\nValueError: no such thing\n'),
        "ValueError: no such thing",
    ),
    "a traceback as plain text": Situation(
        "any server of Python", 400, f"Traceback (most recent call last):\n{PLACE}\nValueError: odd\n".encode(),
        "ValueError: odd", headers={},
    ),
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
        "gpt-5 models don't support", refuses="temperature", when="temperature",
    ),
    "Anthropic by LiteLLM: temperature": _at(
        "BerriAI/litellm#26444", 400,
        _error(
            'AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"`temperature` is '
            'deprecated for this model."}}'
        ),
        "`temperature` is deprecated for this model.", refuses="temperature", when="temperature",
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
    "llama-cpp-python: schema": _at(
        "seen: llama-cpp-python 0.3.36", 500,
        _error(
            "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': "
            f"\"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}}\n\n{PLACE}\n    POST /v1",
            type="internal_server_error",
        ),
        "1 validation error: {'type': 'literal_error'", refuses=SCHEMA, when="json_schema",
    ),
    "LiteLLM: max_tokens": _at(
        "seen: LiteLLM 1.106.12", 400,
        _error(f"{BAD} - Unsupported parameter: 'max_tokens' is not supported.{GROUP}", param="max_tokens"),
        "Unsupported parameter", refuses="max_tokens", when="max_tokens",
    ),
    "infinity: encoding_format": _at(
        "seen: infinity-emb 0.0.78", 422,
        {"detail": [{"type": "enum", "loc": ["body", "text", "encoding_format"], "input": "int8",
                     "msg": "Input should be 'float' or 'base64'"}]},
        "body.text.encoding_format: Input should be", refuses="encoding_format", when="encoding_format",
    ),
    "plain text: schema": Situation(
        "a server of one's own", 400, b"guided decoding is not built in", "guided decoding", refuses=SCHEMA,
        when=SCHEMA, headers={},
    ),
    "LiteLLM: encoding_format": _at(
        "BerriAI/litellm#17150", 400,
        _error("litellm.UnsupportedParamsError: gemini does not support parameters: {'encoding_format': 'float'}"),
        "gemini does not support parameters", refuses="encoding_format", when="encoding_format",
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

# What is refused of every request, with a status that says it of one.
OF_EVERY = {
    "LiteLLM: credit": _at(
        "seen: LiteLLM 1.106.12", 429,
        _error(
            f"litellm.RateLimitError: RateLimitError: OpenAIException - You exceeded your current quota{GROUP}",
            type="throttling_error", code="429",
        ),
        "You exceeded your current quota", refuses="credit",
    ),
    "OpenAI: credit": _at(
        "OpenAI API", 429, _error("You exceeded your current quota, please check.", code="insufficient_quota"),
        "You exceeded", refuses="credit",
    ),
    "LiteLLM: key": _at(
        "seen: LiteLLM 1.106.12", 400, _error("No connected db.", type="no_db_connection", code="400"),
        "No connected db.", refuses="key",
    ),
    "LiteLLM: model": _at(
        "seen: LiteLLM 1.106.12", 400,
        _error("/chat/completions: Invalid model name passed in model=other. Call `/v1/models` to view.", code="400"),
        "/chat/completions: Invalid model name", refuses="model",
    ),
    "transformers serve: model": _at(
        "seen: transformers 5.23.0", 400, {"detail": "Server is pinned to 'tiny-random'; requested 'other'."},
        "Server is pinned", refuses="model",
    ),
    "DeepSeek: model": _at(
        "ConardLi/easy-dataset#9", 400, _error("Model Not Exist", code="invalid_request_error"), "Model Not Exist",
        refuses="model",
    ),
    "OpenRouter: model": _at(
        "RightNow-AI/openfang#697", 400, {"error": {"message": "x-alpha is not a valid model ID", "code": 400}},
        "x-alpha is not", refuses="model",
    ),
}  # fmt: skip

# Addresses at which there is nothing, which says nothing of the model.
NO_PATH = {
    "FastAPI": _at("seen: infinity-emb 0.0.78", 404, {"detail": "Not Found"}, "Not Found"),
    "llama.cpp": _at(
        "llama.cpp, server", 404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}},
        "File Not Found",
    ),
    "Go": Situation("net/http, as Ollama", 404, b"404 page not found", "404 page not found", headers={}),
    "Azure": _at("Azure OpenAI", 404, {"error": {"code": "404", "message": "Resource not found"}}, "Resource not"),
    "OpenAI": _at("OpenAI API", 404, _error("Invalid URL (POST /chat/completions)"), "Invalid URL"),
    "a web page": Situation(
        "nginx", 404, b"<html><head><title>404 Not Found</title></head></html>", "a web page, “404 Not Found”",
        headers=HTML,
    ),
    "nothing": Situation("any proxy", 404, b"", "Not Found", headers={}),
}  # fmt: skip

# No refusal of a parameter, though the words look like one.
NOT_REFUSED = {
    "transformers serve: anything": Situation(
        "seen: transformers 5.23.0, for a bad value", 500, b"Internal Server Error", "Internal Server Error", headers={}
    ),
    "a temperature out of range, pydantic": _at(
        "pydantic", 422,
        {"detail": [{"type": "less_than_equal", "loc": ["body", "temperature"], "input": 3,
                     "msg": "Input should be less than or equal to 2"}]},
        "body.temperature: Input should be less",
    ),
    "Gemini: a minute's quota": _at(
        "huggingface/smolagents#1134, ogkalu2/comic-translate#403", 429,
        [{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan.",
                    "status": "RESOURCE_EXHAUSTED"}}],
        "You exceeded your current quota",
    ),
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
    "Gemini: in 58.8s": _at(
        "ogkalu2/comic-translate#403", 429,
        {"error": {"message": "You exceeded your current quota. Please retry in 58.821668433s."}}, "You exceeded",
        retry_after=58.821668433,
    ),
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
        "No", inside=429,
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
        "of every": OF_EVERY, "no path": NO_PATH,
    }.items()
    for name, situation in rows.items()
}  # fmt: skip
