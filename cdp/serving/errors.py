"""What is refused, in the form of OpenAI's API: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from cdp.base.text import shown
from cdp.serving.bodies import to_json

INVALID, RATE, SERVER = "invalid_request_error", "rate_limit_error", "server_error"


class ApiError(Exception):
    """An answer that is a refusal. ``code`` is for programs and never changes; ``message`` is for people."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        kind: str = INVALID,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.param, self.kind = status, code, message, param, kind
        self.headers = dict(headers or {})

    def response(self) -> Response:
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return Response(to_json({"error": error}), self.status, self.headers, "application/json")


def busy(code: str, message: str, retry_after: int) -> ApiError:
    """429: not now. The official client waits as long as it is told and asks again by itself."""
    return ApiError(429, code, message, kind=RATE, headers={"retry-after": str(retry_after)})


def unavailable(code: str, message: str, retry_after: int = 1) -> ApiError:
    """503: the server cannot answer at this moment."""
    return ApiError(503, code, message, kind=SERVER, headers={"retry-after": str(retry_after)})


def of_validation(error: ValidationError) -> ApiError:
    """The first thing that is wrong with a request's body, with the name of the field."""
    problem = error.errors(include_url=False, include_context=False)[0]
    kind, where = problem["type"], problem["loc"]
    param = str(where[0])[:60] if where else None
    if kind == "json_invalid":
        return ApiError(400, "invalid_json", f"The body is not valid JSON: {_reason(problem['msg'])}.")
    if kind == "model_type" or param is None:
        text = problem["msg"].removeprefix("Value error, ")
        return ApiError(400, "invalid_body", text if kind == "value_error" else "The body must be a JSON object.")
    if kind == "extra_forbidden":
        return ApiError(400, "unknown_parameter", f"Unknown parameter: {shown(param)}.", param=param)
    if kind == "missing":
        return ApiError(400, "missing_parameter", f"{param} is missing.", param=param)
    if kind in _OWN:
        return ApiError(400, kind, problem["msg"], param=param)
    return ApiError(400, "invalid_value", f"{param}: {problem['msg']}.", param=param)


_OWN = ("empty_input", "token_arrays", "invalid_type", "too_many_inputs", "input_too_long")
"""Problems that ``schema`` describes itself; their words are whole sentences."""


def _reason(message: Any) -> str:
    return str(message).removeprefix("Invalid JSON: ")
