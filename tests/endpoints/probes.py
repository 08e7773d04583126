"""Plain requests to a server, and in a few words how it took each: the rows of the table *Tried*."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from tests.endpoints.counterparts import Server

LONGEST_S = 120.0
SHOWN = 110  # characters of a server's words

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

NOTHING = "—"


@dataclass(frozen=True)
class Said:
    """An answer: its status, its JSON (None if it is none) and its text."""

    status: int
    value: Any
    text: str

    @property
    def ok(self) -> bool:
        return self.status == 200

    @property
    def choice(self) -> dict[str, Any]:
        choice: dict[str, Any] = self.value["choices"][0]
        return choice

    @property
    def content(self) -> str:
        return str(self.choice["message"]["content"])

    @property
    def usage(self) -> dict[str, Any]:
        usage: dict[str, Any] = self.value["usage"]
        return usage

    @property
    def refusal(self) -> str:
        """The status with where in the body the words stand, and the words."""
        where, words = NOTHING, ""
        if isinstance(self.value, dict):
            error, detail = self.value.get("error"), self.value.get("detail")
            if isinstance(error, dict):
                where, words = "error.message", str(error.get("message"))
            elif isinstance(error, str):
                where, words = "error", error
            elif isinstance(detail, list):
                where, words = "detail, a list", str(detail[0].get("msg"))
            elif detail is not None:
                where, words = "detail", str(detail)
        else:
            where, words = "plain text", self.text
        line = " ".join(words.split())
        shown = line if len(line) <= SHOWN else f"{line[:SHOWN].rsplit(' ', 1)[0]} …"
        return f"{self.status}, {where}: “{shown}”".replace("|", "\\|")


class Asking:
    """Requests to one server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.model = server.counterpart.model

    def chat(self, **more: Any) -> Said:
        message = more.pop("content", "Write exactly 1 query.\n<document>\nBees find flowers by scent.\n</document>")
        body = {"model": self.model, "messages": [{"role": "user", "content": message}], **more}
        return self.post("chat/completions", json.dumps(body))

    def embed(self, texts: Any, **more: Any) -> Said:
        return self.post("embeddings", json.dumps({"model": self.model, "input": texts, **more}))

    def post(self, path: str, body: str) -> Said:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.server.key}"}
        return _said(httpx.post(f"{self.server.url}/{path}", content=body, headers=headers, timeout=LONGEST_S))

    def get(self, path: str) -> Said:
        headers = {"Authorization": f"Bearer {self.server.key}"}
        return _said(httpx.get(f"{self.server.url}/{path}", headers=headers, timeout=LONGEST_S))

    def passed_on(self, name: str) -> bool:
        """Whether the server behind this one was sent the parameter."""
        return self.server.upstream is not None and name in self.server.upstream.bodies[-1]


def _said(response: httpx.Response) -> Said:
    try:
        value = response.json()
    except ValueError:
        value = None
    return Said(response.status_code, value, response.text)


def models_listed(ask: Asking) -> str:
    found = ask.get("models")
    if not found.ok:
        return found.refusal
    names = [model["id"] for model in found.value["data"]]
    return "the served one" if ask.model in names else f"{len(names)}, not the served one"


def _as_json(ask: Asking, form: dict[str, Any]) -> str:
    found = ask.chat(response_format=form, max_tokens=400, temperature=0)
    if not found.ok:
        return found.refusal
    if ask.passed_on("response_format"):
        return "passed on"
    # A random model may not close what it opens.
    held = found.content.lstrip().startswith("{")
    return "held to JSON" if held else "ignored, 200"


def json_schema(ask: Asking) -> str:
    return _as_json(ask, SCHEMA)


def json_object(ask: Asking) -> str:
    return _as_json(ask, {"type": "json_object"})


def _limit(ask: Asking, name: str) -> str:
    found = [ask.chat(**{name: 8}) for _ in range(4)]
    if not all(said.ok for said in found):
        return next(said.refusal for said in found if not said.ok)
    if ask.passed_on(name):
        return "passed on"
    # A letter of several bytes is finished, and an answer may end before.
    if max(said.usage["completion_tokens"] for said in found) > 12:
        return "ignored, 200: writes on"
    reasons = sorted({said.choice["finish_reason"] for said in found if said.usage["completion_tokens"] >= 8})
    return f"kept; finish_reason {', '.join(reasons)}"


def max_tokens(ask: Asking) -> str:
    return _limit(ask, "max_tokens")


def max_completion_tokens(ask: Asking) -> str:
    return _limit(ask, "max_completion_tokens")


def temperature_and_seed(ask: Asking) -> str:
    same = [ask.chat(temperature=0, max_tokens=16) for _ in range(2)]
    draws = [ask.chat(temperature=1.0, top_p=0.9, seed=seed, max_tokens=16) for seed in (1, 1, 2)]
    if not all(said.ok for said in [*same, *draws]):
        return next(said.refusal for said in [*same, *draws] if not said.ok)
    if ask.passed_on("seed"):
        return "passed on"
    first, again, other = (said.content for said in draws)
    found = [
        "0 is greedy" if same[0].content == same[1].content else "**0 still draws**",
        "a seed repeats" if first == again else "**a seed does not repeat**",
        "another draws anew" if first != other else "**another repeats too**",
    ]
    return ", ".join(found)


def stop(ask: Asking) -> str:
    found = [ask.chat(stop=["e"], max_tokens=200) for _ in range(3)]
    if not all(said.ok for said in found):
        return next(said.refusal for said in found if not said.ok)
    if ask.passed_on("stop"):
        return "passed on"
    stopped = [said for said in found if said.choice["finish_reason"] == "stop" and said.content]
    left = any("e" in said.content for said in stopped)
    return "ends there, and **stays in the text**" if left else "ends before it"


def several(ask: Asking) -> str:
    found = ask.chat(n=3, max_tokens=8)
    if not found.ok:
        return found.refusal
    n = len(found.value["choices"])
    return "passed on" if ask.passed_on("n") else f"{n} of 3{' (ignored)' if n == 1 else ''}"


def logprobs(ask: Asking) -> str:
    found = ask.chat(logprobs=True, max_tokens=8)
    if not found.ok:
        return found.refusal
    if ask.passed_on("logprobs"):
        return "passed on"
    return "given" if found.choice.get("logprobs") else "none, 200"


def unknown_field(ask: Asking) -> str:
    found = ask.chat(no_such_field=1, max_tokens=8)
    if not found.ok:
        return found.refusal
    return "passed on" if ask.passed_on("no_such_field") else "ignored, 200"


def unknown_model(ask: Asking) -> str:
    chats = ask.server.counterpart.chats
    found = ask.chat(model="no-such-model", max_tokens=8) if chats else ask.embed(["bee"], model="no-such-model")
    return "taken: its only model answers" if found.ok else found.refusal


def wrong_key(ask: Asking) -> str:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-wrong"}
    body = {"model": ask.model, "messages": [{"role": "user", "content": "bee"}], "max_tokens": 8, "input": ["bee"]}
    path = "chat/completions" if ask.server.counterpart.chats else "embeddings"
    body.pop("messages" if path == "embeddings" else "input")
    found = _said(httpx.post(f"{ask.server.url}/{path}", json=body, headers=headers, timeout=LONGEST_S))
    return "no key asked" if found.ok else found.refusal


def wrong_value(ask: Asking) -> str:
    if not ask.server.counterpart.chats:
        found = ask.embed(["bee"], encoding_format="int8")
        return "taken" if found.ok else found.refusal
    found = ask.chat(temperature="hot", max_tokens=8)
    if found.ok and ask.passed_on("temperature"):
        return "passed on"
    return "taken" if found.ok else found.refusal


def broken_json(ask: Asking) -> str:
    path = "chat/completions" if ask.server.counterpart.chats else "embeddings"
    return ask.post(path, '{"model": ').refusal


def too_long(ask: Asking) -> str:
    if not ask.server.counterpart.chats:
        found = ask.embed(["bee flower " * 2000])
        return "cut in silence" if found.ok else found.refusal
    if not ask.server.counterpart.context:
        return "passed on"
    # The letters of a word are tokens of one tokenizer or the other: twice the context at least.
    found = ask.chat(content="bee " * 2 * ask.server.counterpart.context, max_tokens=8)
    return f"answered all the same (prompt_tokens {found.usage['prompt_tokens']:,})" if found.ok else found.refusal


def usage(ask: Asking) -> str:
    if not ask.server.counterpart.chats:
        tokens = ask.embed(["hello there", "bee"]).usage["prompt_tokens"]
        return "**characters**, not tokens" if tokens == len("hello therebee") else f"{tokens} for two short texts"
    upstream = ask.server.upstream
    if upstream is not None:
        upstream.script.append("usage null")
        counts = ask.chat(max_tokens=8).usage
        told = "**zeros**" if not any(counts.values()) else json.dumps(counts)
        return f"as upstream's; where that gives none: {told}"
    counts = ask.chat(max_tokens=8, content="bee").usage
    fits = counts["total_tokens"] == counts["prompt_tokens"] + counts["completion_tokens"]
    return "tokens" if fits and counts["prompt_tokens"] else json.dumps(counts)


def index_and_order(ask: Asking) -> str:
    texts = ["bee", "stone bridge", "winter light and water", "school"]
    alone = [ask.embed([text], encoding_format="float").value["data"][0]["embedding"] for text in texts]
    data = ask.embed(texts, encoding_format="float").value["data"]
    if any("index" not in item for item in data):
        return "no index"
    ordered = "in order" if [item["index"] for item in data] == list(range(len(texts))) else "in another order"
    right = all(
        max(abs(a - b) for a, b in zip(item["embedding"], alone[item["index"]], strict=True)) < 1e-4 for item in data
    )
    return f"index {ordered}, {'right' if right else '**wrong**'}"


def encoding_format(ask: Asking) -> str:
    found = ask.embed(["bee"], encoding_format="base64")
    if not found.ok:
        return found.refusal
    vector = found.value["data"][0]["embedding"]
    if not isinstance(vector, str):
        return "floats, whichever is asked for"
    width = len(ask.embed(["bee"], encoding_format="float").value["data"][0]["embedding"])
    return "float and base64" if len(base64.b64decode(vector)) == 4 * width else "base64 of another size"


def dimensions(ask: Asking) -> str:
    found = ask.embed(["bee"], dimensions=8, encoding_format="float")
    if not found.ok:
        return found.refusal
    if ask.passed_on("dimensions"):
        return "passed on"
    width = len(found.value["data"][0]["embedding"])
    return "cut to 8" if width == 8 else f"ignored: {width}"


def empty_text(ask: Asking) -> str:
    found = ask.embed(["bee", ""], encoding_format="float")
    return "taken" if found.ok else found.refusal


def batch(ask: Asking) -> str:
    """The largest of some usual sizes that is taken, and the words of the first that is not."""
    most = 0
    for n in (1, 10, 32, 100, 2048, 2049):
        found = ask.embed([f"bee {at}" for at in range(n)], encoding_format="float")
        if not found.ok:
            return f"{most:,} taken; {n:,}: {found.refusal}"
        most = n
    return f"{most:,} taken"


Probe = Callable[[Asking], str]

CHAT: dict[str, Probe] = {
    "`GET /models`": models_listed,
    "`response_format` json_schema": json_schema,
    "`response_format` json_object": json_object,
    "`max_tokens`": max_tokens,
    "`max_completion_tokens`": max_completion_tokens,
    "`temperature`, `seed`": temperature_and_seed,
    "`stop`": stop,
    "`n`": several,
    "`logprobs`": logprobs,
    "a field that it does not know": unknown_field,
    "another model's name": unknown_model,
    "a wrong key": wrong_key,
    "a wrong value": wrong_value,
    "broken JSON": broken_json,
    "longer than the context": too_long,
    "`usage`": usage,
}
EMBEDDINGS: dict[str, Probe] = {
    "embeddings: order": index_and_order,
    "embeddings: `encoding_format`": encoding_format,
    "embeddings: `dimensions`": dimensions,
    "embeddings: an empty text": empty_text,
    "embeddings: texts a request": batch,
}
# Rows that mean the same at a server of embeddings alone.
BOTH = ("`GET /models`", "another model's name", "a wrong key", "a wrong value", "broken JSON",
        "longer than the context", "`usage`")  # fmt: skip


def tried(server: Server) -> dict[str, str]:
    """Return each row's cell for one server."""
    asking, counterpart = Asking(server), server.counterpart
    cells = {}
    for row, probe in {**CHAT, **EMBEDDINGS}.items():
        fits = (row in CHAT and (counterpart.chats or row in BOTH)) or (row in EMBEDDINGS and counterpart.embeds)
        cells[row] = probe(asking) if fits else NOTHING
    return cells
