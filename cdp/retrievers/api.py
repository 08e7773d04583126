"""Retrievers behind ``/embeddings``, ``api:MODEL@ADDRESS``: requests, vectors kept, budget, texts without a vector.

``ApiModel`` answers to the calls of ``SentenceTransformer`` that we make for an untrained retriever. Each text's vector
is kept in the answer cache, keyed by model, address and text: no text is paid for twice, not by another collection that
holds it, and not after a kill. The shards in ``embeddings/`` are made of these vectors.

A text that the server cannot embed is found by halving its batch. It is in ``failed`` and its vector is zero: it is
near no query, an evaluation leaves it out of every ranking and says so, and the next one asks for it again.
"""

from __future__ import annotations

import base64
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import numpy as np

from cdp.base.errors import ConfigError, ModelError, ProviderError
from cdp.base.failures import Streak, line_of
from cdp.base.text import cut_to_tokens, encodable, estimate_tokens
from cdp.base.worker import Job, Stopped
from cdp.base.workspace import Workspace, sha256_text
from cdp.llm import address
from cdp.llm.answers import Answer, Cancelled, Embeddings, RequestError, Usage
from cdp.llm.cache import Account, AnswerCache, cache_key
from cdp.llm.prices import price_of
from cdp.llm.refusals import Learnt

if TYPE_CHECKING:
    from cdp.llm.client import ChatClient

PREFIX = "api:"
# Longer texts are cut at the end of a sentence. OpenAI's models read 8,191 tokens, and lengths are estimated.
LONGEST = 6000
# Texts per request. More than 32 are refused by text-embeddings-inference as it is shipped.
BATCH = 32
CONCURRENCY, TIMEOUT_S, RETRIES = 8, 60.0, 5
# Of requests that look for the text which fails: the whole batch had all its retries.
RETRIES_HALVED = 1
# No text is the cause: a lost connection, a rate limit, a server that is overloaded or away.
OUTAGES = (0, 408, 409, 429, 502, 503, 504)
TICK_S = 0.5
# Stands for an empty text, which endpoints refuse; its vector is zero.
EMPTY = "."

_NAME = re.compile(r"api:(?P<model>[^\s,]+?)(?:@(?P<url>https?://[^\s,]+))?")


@dataclass(frozen=True)
class ApiName:
    """A model at an address."""

    model: str
    url: str

    @property
    def name(self) -> str:
        """The name with its address: the same retriever wherever the name is read."""
        return f"{PREFIX}{self.model}@{self.url}"

    @property
    def title(self) -> str:
        return f"{self.model} at {urlsplit(self.url).netloc}"


def parse(name: str) -> ApiName | None:
    """Return model and address of an API's name, None for any other name. ConfigError for a malformed one.

    Without an address it is that of the environment (``cdp.llm.address``).
    """
    text = name.strip()
    if not text.startswith(PREFIX):
        return None
    match = _NAME.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"{text[:80]!r} names no retriever behind an API.",
            hint="Write api:MODEL or api:MODEL@ADDRESS, as api:bge-m3@http://localhost:8000/v1.",
        )
    return ApiName(match["model"], address.address(match["url"] or ""))


def refused(name: str) -> ConfigError:
    """Return the error for an API's name where only a model of this machine will do."""
    return ConfigError(
        f"{name} is behind an API and cannot be trained or loaded here.",
        hint="Name a preset, a training, or a model's name or folder. With an API's retriever you can search, "
        "evaluate, pool for judging, mine hard negatives, and teach.",
    )


# The vector of each text of a batch, and the error of each that has none.
EmbeddedTexts = tuple[dict[str, np.ndarray], dict[str, RequestError]]


@dataclass(frozen=True)
class Payer:
    """On whose account embeddings are paid for, within ``budget`` US dollars (None: without a limit)."""

    workspace: Workspace
    id: str
    budget: float | None = None
    should_stop: Callable[[], bool] = bool

    @classmethod
    def of(cls, job: Job, budget: float | None, retriever: str = "", among: Sequence[str] = ()) -> Self:
        """Return the account of a job; for a ``retriever`` with what others ``among`` its retrievers left of the
        budget."""
        payer = cls(job.workspace, job.id, budget, job.stop_requested)
        return payer if budget is None else replace(payer, budget=budget - payer.cost({*among} - {retriever}))

    def account(self, name: ApiName) -> str:
        """Return the account's id in the answer cache: one per retriever, since each has a price of its own."""
        return f"{self.id}/{name.name}"

    def cost(self, names: Iterable[str]) -> float:
        """Return what these retrievers have cost so far, in US dollars; 0 for those that have no price."""
        named = [found for name in names if (found := parse(name)) is not None]
        if not named:
            return 0.0
        with AnswerCache(self.workspace) as cache:
            priced = [(price_of(self.workspace, n.model), cache.spent(self.account(n))) for n in named]
        return math.fsum(price.cost(spent) for price, spent in priced if price is not None)


class ApiModel:
    """One retriever behind an API. Safe to share between threads."""

    similarity_fn_name = "cosine"
    training = False

    def __init__(self, name: ApiName, payer: Payer, max_length: int | None = None) -> None:
        self.name, self.max_seq_length = name, max_length or LONGEST
        self.prompts = {"query": "", "document": ""}
        self.identity = sha256_text("api", name.model, name.url)[:16]
        self._payer = payer
        self._price = price_of(payer.workspace, name.model, payer.budget)
        self._dim: int | None = None
        self._client: ChatClient | None = None
        self._lock = threading.Lock()
        self.failed: dict[str, RequestError] = {}  # by text, as it was given
        self._streak = Streak()
        folder = payer.workspace.job(payer.id)
        self._learnt = Learnt(name.model, name.url, folder / Learnt.FILE if folder.is_dir() else None)

        with AnswerCache(payer.workspace) as cache:
            cache.settle_interrupted(payer.account(name), charged=True)

    def _connect(self) -> ChatClient:
        """Return the client, made for the first text without a vector: from then on a key is needed."""
        from cdp.llm.client import ChatClient

        with self._lock:
            if self._client is None or self._client.stopping:
                self._client = ChatClient(
                    address.resolve(self.name.url), self.name.model,
                    concurrency=CONCURRENCY, timeout_s=TIMEOUT_S, retries=RETRIES, learnt=self._learnt,
                )  # fmt: skip
            return self._client

    def encode_query(self, texts: Sequence[str], *, batch_size: int = BATCH, **_: Any) -> np.ndarray:
        """Return (n, dim) float32; the row of a text in ``failed`` is zero. At most ``batch_size`` texts a request.

        ConfigError once the budget is used up, Stopped after a request to stop. ModelError for vectors of changing
        dimension; RequestError if no text could be embedded, ProviderError and RefusedError as the client's.
        """
        sent = [cut_to_tokens(encodable(text), self.max_seq_length) for text in texts]
        sent = [text if text.strip() else EMPTY for text in sent]
        keys = {text: cache_key(sha256_text(text), "", self.name.model, {"embeddings": self.name.url}) for text in sent}
        found: dict[str, np.ndarray] = {}
        failed: dict[str, RequestError] = {}
        with AnswerCache(self._payer.workspace) as cache:
            for text, key in keys.items():
                if (answer := cache.get(key)) is not None:
                    found[text] = self._checked(np.frombuffer(base64.b64decode(answer.text), "<f4")[None])[0]
            missing = [text for text in keys if text not in found]
            for answered, refused in self._asked(missing, keys, cache, min(batch_size, BATCH)):
                found.update(answered)
                failed.update(refused)

        if failed and self._dim is None:  # nothing was embedded so far
            raise next(iter(failed.values()))

        for text, asked in zip(texts, sent, strict=True):
            if asked in failed:
                self.failed[text] = failed[asked]
            else:
                self.failed.pop(text, None)

        zero = np.zeros(self._dim or 0, np.float32)
        rows = [found.get(text, zero) * (text != EMPTY) for text in sent]

        return np.stack(rows) if rows else np.empty((0, self._dim or 0), np.float32)

    encode_document = encode_query

    def _asked(
        self, texts: Sequence[str], keys: Mapping[str, str], cache: AnswerCache, size: int
    ) -> Iterator[EmbeddedTexts]:
        """Ask about texts in batches, several at once; what is answered is kept before it is given."""
        if not texts:
            return

        client = self._connect()
        account = Account(cache, self._payer.account(self.name), price=self._price, budget=self._payer.budget)
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        with ThreadPoolExecutor(min(CONCURRENCY, len(batches)), "embeddings") as pool:
            # The first request of a model alone: what it teaches is not asked for eight times.
            first = 1 if self._dim is None and self._learnt.texts is None else len(batches)
            futures = [pool.submit(self._ask, batch, keys, client, account) for batch in batches[:first]]

            try:
                left = set(futures)
                while left:
                    done, left = wait(left, TICK_S, FIRST_EXCEPTION)
                    for future in done:
                        future.result()

                    if not left:
                        waiting = batches[len(futures) :]
                        left = {pool.submit(self._ask, batch, keys, client, account) for batch in waiting}
                        futures += left

                    if left and self._payer.should_stop():
                        raise Stopped
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                account.close()
                client.stop()

                if account.used_up:
                    raise ConfigError(
                        f"The budget for embeddings, {max(0.0, self._payer.budget or 0.0):g} US dollars, is used up.",
                        hint="Start again with a larger one: what was paid for is not paid for again.",
                    ) from None

                if isinstance(error, Cancelled):
                    raise Stopped from None

                raise

        yield from (future.result() for future in futures)

    def _ask(
        self, texts: Sequence[str], keys: Mapping[str, str], client: ChatClient, account: Account,
        retries: int | None = None,
    ) -> EmbeddedTexts:  # fmt: skip
        """Ask about one batch, in smaller ones if the server takes fewer texts, or if one text makes the batch fail."""
        most = self._learnt.texts or len(texts)
        if len(texts) > most:
            return self._parts(texts, most, keys, client, account, retries)

        try:
            vectors = self._answered(texts, keys, client, account, retries)
        except RequestError as error:
            if self._learnt.texts and len(texts) > self._learnt.texts:
                return self._ask(texts, keys, client, account, retries)
            if error.status in OUTAGES:
                raise
            if len(texts) > 1:
                return self._parts(texts, (len(texts) + 1) // 2, keys, client, account, RETRIES_HALVED)

            return {}, {texts[0]: self._failing(error)}

        good = np.isfinite(vectors).all(axis=1) if vectors.size else np.zeros(len(texts), bool)

        found = {text: row for text, row, usable in zip(texts, vectors, good, strict=True) if usable}
        if found:
            with self._lock:
                self._streak.end()

        none = RequestError(f"{self.name.title} gave no vector for it, or one with values that are not finite.")
        return found, {text: self._failing(none) for text in texts if text not in found}

    def _parts(self, texts: Sequence[str], size: int, *rest: Any) -> EmbeddedTexts:
        found: dict[str, np.ndarray] = {}
        failed: dict[str, RequestError] = {}
        for start in range(0, len(texts), size):
            answered, refused = self._ask(texts[start : start + size], *rest)
            found |= answered
            failed |= refused
        return found, failed

    def _failing(self, error: RequestError) -> RequestError:
        """Count a text that cannot be embedded; ProviderError for many in a row."""
        if not error.hint or not error.exhausted:
            error.hint = "Is the text too long for the model? An evaluation's max_length cuts texts earlier."
        with self._lock:
            too_many = self._streak.add()
        if too_many:
            message = f"{self._streak.limit} texts in a row were not embedded; the last: {error.message}"
            raise ProviderError(message, hint=error.hint)
        return error

    def _answered(
        self, texts: Sequence[str], keys: Mapping[str, str], client: ChatClient, account: Account, retries: int | None
    ) -> np.ndarray:
        tokens = sum(map(estimate_tokens, texts))
        usual, most = Usage(tokens, 0, 1), Usage(math.ceil(1.2 * tokens), 0, 1)

        def kept(answer: Embeddings) -> dict[str, Answer]:
            rows = self._checked(answer.vectors).astype("<f4")
            return {
                keys[text]: Answer(base64.b64encode(row.tobytes()).decode(), model=self.name.model)
                for text, row in zip(texts, rows, strict=True)
                if row.size and np.isfinite(row).all()
            }

        def ask() -> np.ndarray:
            key = sha256_text(*(keys[text] for text in texts))
            return account.ask(key, usual, most, lambda: client.embed(texts, usual, retries=retries), kept).vectors

        # One more try for an answer that cannot be used, as a whole or for each text.
        try:
            vectors = ask()
        except RequestError as error:
            if not (error.exhausted and error.raw):
                raise
            return ask()
        return vectors if np.isfinite(vectors).any() else ask()

    def _checked(self, vectors: np.ndarray) -> np.ndarray:
        if not vectors.shape[1]:  # no text of the batch has a vector
            return vectors
        with self._lock:
            self._dim = self._dim or vectors.shape[1]
        if vectors.shape[1] != self._dim:
            raise ModelError(
                f"{self.name.title} gave vectors of {self._dim} dimensions before and now of {vectors.shape[1]}.",
                hint="Another model answers under this name now. Give it a name of its own at its server.",
            )
        return vectors

    # what else is asked of a SentenceTransformer

    @property
    def device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_embedding_dimension(self) -> int | None:
        return self._dim

    def parameters(self) -> Iterator[Any]:
        return iter(())

    def state_dict(self) -> dict[str, Any]:
        return {}

    def eval(self) -> Self:
        return self

    def train(self, mode: bool = True) -> Self:
        return self

    def to(self, *_: Any, **__: Any) -> Self:
        return self


def failed_texts(model: Any) -> dict[str, RequestError]:
    """Return {text: why the retriever behind an API gave no vector}; empty for a model of this machine."""
    return model.failed if isinstance(model, ApiModel) else {}


def record_failed(
    job: Job, model: Any, documents: Iterable[tuple[str, str]], queries: Iterable[tuple[str, str]] = ()
) -> None:
    """List the (id, text) that a retriever behind an API could not embed among the job's failed items."""
    if not isinstance(model, ApiModel):
        return
    for unit, rows in (("document", documents), ("query", queries)):
        failures = job.failures(f"embedding {unit}", unit=unit, keep=False)
        for name, text in rows if model.failed else ():
            if (error := model.failed.get(text)) is not None:
                failures.write(line_of(error, name, text, unit=unit, stage=f"embedding {unit}"))
