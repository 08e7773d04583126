"""What a request may hold. Pydantic reads the JSON; whatever is not here is refused and not ignored, so that a field
with a typing error does not silently change an answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from cdp.searching.queries import DEFAULT_K, MOST_K

SHOWN, MOST_SHOWN = 300, 20_000
"""Characters of a document's text in an answer: by default, and at most."""

TOKENS = (
    "input must be a text or a list of texts. Token ids are those of another model's tokenizer and mean nothing here: "
    "send the texts themselves (LangChain: check_embedding_ctx_length=False)."
)


def _texts(value: Any, info: ValidationInfo) -> list[str]:
    """One text or a list of them as a list. The limits come with the validation's context."""
    name = info.field_name or "input"
    max_inputs, max_characters = (info.context or {}).get("limits", (2048, 100_000))
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list):
        raise PydanticCustomError("invalid_type", "{name} must be a text or a list of texts.", {"name": name})
    if not listed:
        raise PydanticCustomError("empty_input", "{name} is an empty list.", {"name": name})
    if len(listed) > max_inputs:
        message = "{name} has {n} texts; at most {most} are taken in one request."
        values = {"name": name, "n": f"{len(listed):,}", "most": f"{max_inputs:,}"}
        raise PydanticCustomError("too_many_inputs", message, values)
    for number, text in enumerate(listed):
        at = {"where": name if isinstance(value, str) else f"{name}[{number}]"}
        if isinstance(text, (int, list)) and not isinstance(text, bool):
            raise PydanticCustomError("token_arrays", TOKENS)
        if not isinstance(text, str):
            raise PydanticCustomError("invalid_type", "{where} is not a text.", at)
        if not text:
            raise PydanticCustomError("empty_input", "{where} is an empty text.", at)
        if len(text) > max_characters:
            message = "{where} has {n} characters; at most {most} are taken."
            values = {**at, "n": f"{len(text):,}", "most": f"{max_characters:,}"}
            raise PydanticCustomError("input_too_long", message, values)
    return listed


Texts = Annotated[list[str], BeforeValidator(_texts)]


class Request(BaseModel):
    """Base of all: nothing unknown, no 1 for true and no "5" for 5."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class EmbeddingRequest(Request):
    """``POST /v1/embeddings``. ``input_type`` is not OpenAI's: it chooses the retriever's prompt."""

    model: str
    input: Texts
    input_type: Literal["query", "document"] | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None


class SearchRequest(Request):
    """``POST /v1/search``: one query, or several."""

    model: str | None = None
    query: str | None = None
    queries: Texts | None = None
    top_k: int = Field(DEFAULT_K, ge=1, le=MOST_K)
    text_characters: int = Field(SHOWN, ge=0, le=MOST_SHOWN)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.query is None) == (self.queries is None):
            raise ValueError("Give either query, a text, or queries, a list of texts.")
        return self


class SearchQuery(BaseModel):
    """``GET /v1/search``: the same of one query, as text in the address."""

    model_config = ConfigDict(extra="forbid")

    query: str
    model: str | None = None
    top_k: int = Field(DEFAULT_K, ge=1, le=MOST_K)
    text_characters: int = Field(SHOWN, ge=0, le=MOST_SHOWN)
