"""The ``transformers`` generator: a local instruct model, on a GPU if there is one; batches, sampling, stop texts.

The model is loaded by ``prepare`` and nothing heavier than the standard library before, so that the dashboard can name
this generator without loading torch. A batch that does not fit in memory is halved until it does.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ModelError, NotFoundError
from cdp.base.records import Document
from cdp.base.text import encodable
from cdp.base.workspace import Workspace, sha256_text
from cdp.llm.answers import Answer, Cancelled, RequestError, Usage
from cdp.synthesis.generators import Generator, GeneratorType
from cdp.synthesis.methods import Method

if TYPE_CHECKING:
    from cdp.retrievers import ResolvedRetriever

# How long the first call of a batch waits for others to come.
GATHER_S = 0.02


def locate(name: str, kind: str, hint: str) -> ResolvedRetriever:
    """Find a model by hub name or folder; ModelError where there is none."""
    from cdp.retrievers import resolve

    try:
        return resolve(name, Workspace.default())
    except (ModelError, NotFoundError) as error:
        raise ModelError(f"The {kind} {name} cannot be loaded: {error.message}", hint=hint) from None


HINT = "Give the name or the folder of an instruct model, or use another generator."

# So many batches of prompts wait at once, for batches of similar length to be made of them.
LOOK_AHEAD = 8


class _Settings(NamedTuple):
    """What the requests of a batch have in common."""

    longest: int
    temperature: float
    top_p: float
    stop: tuple[str, ...]


@dataclass(eq=False)
class _Request:
    tokens: tuple[int, ...]
    seed: int
    settings: _Settings
    answer: Future[Answer] = field(default_factory=Future)


class LocalModelGenerator(Generator):
    """Answers of one causal language model. ``model`` is a name on the hub or a folder.

    Callers wait in threads; one of them at a time generates a batch for all. The request that has waited longest is
    always in it, and those nearest to it in length fill it up, so that little is padded.
    """

    name = "transformers"
    is_llm = True

    def __init__(self, config: SynthesisConfig) -> None:
        self.model = config.endpoint.model_name
        self.concurrency = LOOK_AHEAD * config.endpoint.batch_size
        self._config = config
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._cancelled = threading.Event()
        self._loaded: tuple[Any, Any] | None = None
        self._largest = config.endpoint.batch_size
        self._waiting: list[_Request] = []

    @property
    def parameters(self) -> dict[str, object]:
        config = self._config
        return {
            "temperature": config.temperature,
            "max_output_tokens": config.endpoint.max_output_tokens,
            "seed": config.seed,
            "generator": self.name,
        }

    def prepare(self) -> None:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self.model, self._config.gpus)

    def cancel(self) -> None:
        self._cancelled.set()

    def generate(
        self, prompt: str, document: Document, method: Method, m: int, *, sample: int = 0, query: str = ""
    ) -> Answer:
        self.prepare()
        assert self._loaded is not None
        tokenizer, model = self._loaded
        sampling, config = method.sampling_for(m, sample), self._config
        sent = sampling.within(self.parameters)
        settings = _Settings(
            sent["max_output_tokens"], sent["temperature"], sent.get("top_p", 1.0), sent.get("stop", ())
        )

        tokens = _encode(tokenizer, prompt)
        room = getattr(model.config, "max_position_embeddings", None)
        if room is not None and len(tokens) + 1 > room:
            raise RequestError(
                f"The prompt has {len(tokens)} tokens, more than the {room} that {self.model} reads.",
                hint="Lower max_document_tokens.",
            )

        # The request's own seed, so that its batch does not change the draw.
        seed = int(sha256_text(str(config.seed), str(sampling.seed or 0), prompt)[:15], 16)

        request = _Request(tokens, seed, settings)
        with self._lock:
            self._waiting.append(request)

        while not request.answer.done():
            with self._turn:
                if not request.answer.done():
                    if self._cancelled.wait(GATHER_S):
                        raise Cancelled
                    self._serve()

        return request.answer.result()

    def _serve(self) -> None:
        """Generate one batch."""
        with self._lock:
            oldest = self._waiting[0]
            alike = [request for request in self._waiting if request.settings == oldest.settings]
            alike.sort(key=lambda r: (r is not oldest, abs(len(r.tokens) - len(oldest.tokens))))
            batch = alike[: self._largest]
            self._waiting = [request for request in self._waiting if request not in batch]

        try:
            answers = self._answers(batch)
        except BaseException as error:
            for request in batch:
                request.answer.set_exception(error)
            return

        for request, answer in zip(batch, answers, strict=True):
            request.answer.set_result(answer)

    def _answers(self, requests: Sequence[_Request]) -> list[Answer]:
        """One answer per request; a batch too large for the GPU's memory is halved, and later ones stay so small."""
        import torch

        try:
            return self._generate(requests)
        except torch.cuda.OutOfMemoryError:
            if len(requests) == 1:
                raise
        torch.cuda.empty_cache()
        self._largest = half = len(requests) // 2
        return self._answers(requests[:half]) + self._answers(requests[half:])

    def _generate(self, prompts: Sequence[_Request]) -> list[Answer]:
        import torch
        from transformers import (
            LogitsProcessorList,
            StoppingCriteriaList,
            TemperatureLogitsWarper,
            TopPLogitsWarper,
        )

        assert self._loaded is not None
        tokenizer, model = self._loaded
        settings = prompts[0].settings
        width = max(len(prompt.tokens) for prompt in prompts)
        room = getattr(model.config, "max_position_embeddings", None)
        pad = tokenizer.pad_token_id
        ids = torch.full((len(prompts), width), pad)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):  # padded on the left, so that every row goes on from its end
            ids[row, width - len(prompt.tokens) :] = torch.tensor(prompt.tokens)
            mask[row, width - len(prompt.tokens) :] = 1

        longest = settings.longest
        if room is not None:
            longest = max(1, min(longest, room - width))

        criteria = [_Stop(tokenizer, width, settings.stop, self._cancelled)]
        draw: list[Any] = []
        if settings.temperature:
            draw.append(TemperatureLogitsWarper(settings.temperature))
            if settings.top_p < 1:
                draw.append(TopPLogitsWarper(settings.top_p))
            draw.append(_Draw([prompt.seed for prompt in prompts]))

        with torch.inference_mode():
            out = model.generate(
                input_ids=ids.to(model.device),
                attention_mask=mask.to(model.device),
                max_new_tokens=longest,
                do_sample=False,
                num_beams=1,
                pad_token_id=pad,
                logits_processor=LogitsProcessorList(draw),
                stopping_criteria=StoppingCriteriaList(criteria),
            )

        if self._cancelled.is_set():
            raise Cancelled

        ends = _end_tokens(model, tokenizer)
        return [
            _answer(tokenizer, row, prompt, ends, settings.stop, self.model)
            for row, prompt in zip(out[:, width:].tolist(), prompts, strict=True)
        ]


def _answer(
    tokenizer: Any, row: list[int], prompt: _Request, ends: set[int], stop: tuple[str, ...], model: str
) -> Answer:
    """The text of one row up to its end token or stop text, with the tokens that it took."""
    from cdp.llm.reader import MARKS, until  # its patterns take 14 ms, where a command starts that asks no model

    length = next((i + 1 for i, token in enumerate(row) if token in ends), len(row))
    # Special tokens that mark a thought are the reader's to take out: without them it would pass for the answer.
    dropped = {id_ for token, id_ in zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True)
               if token not in MARKS}  # fmt: skip
    kept = [token for token in row[:length] if token not in dropped | ends]
    text, stopped = until(tokenizer.decode(kept, skip_special_tokens=False), stop)
    ended = stopped or any(token in ends for token in row)
    usage = Usage(len(prompt.tokens), length, 1)
    return Answer(text=text, usage=usage, model=model, finish_reason="stop" if ended else "length")


class _Draw:
    """Gumbel noise from each row's own seed, which makes the largest score a draw from the softmax."""

    def __init__(self, seeds: Sequence[int]) -> None:
        import torch

        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        width = scores.shape[-1]
        noise = torch.stack([torch.empty(width).exponential_(generator=generator) for generator in self._generators])
        return scores.float() - torch.log(noise).to(scores.device)


class _Stop:
    """Rows are done at a stop text, and all of them when the run is cancelled."""

    def __init__(self, tokenizer: Any, width: int, stop: tuple[str, ...], cancelled: threading.Event) -> None:
        self._tokenizer = tokenizer
        self._width = width
        self._stop = stop
        self._cancelled = cancelled

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        import torch

        from cdp.llm.reader import until

        if self._cancelled.is_set():
            return torch.ones(len(input_ids), dtype=torch.bool, device=input_ids.device)
        done = [False] * len(input_ids)
        if self._stop:
            texts = self._tokenizer.batch_decode(input_ids[:, self._width :], skip_special_tokens=True)
            done = [until(text, self._stop)[1] for text in texts]
        return torch.tensor(done, dtype=torch.bool, device=input_ids.device)


def _encode(tokenizer: Any, prompt: str) -> tuple[int, ...]:
    """The prompt as the one turn of a chat; as plain text for a model without a chat template."""
    clean = encodable(prompt)
    if getattr(tokenizer, "chat_template", None):
        turn = [{"role": "user", "content": clean}]
        text = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
        return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
    return tuple(tokenizer(clean)["input_ids"])


def _end_tokens(model: Any, tokenizer: Any) -> set[int]:
    configured = model.generation_config.eos_token_id
    configured_tokens = configured if isinstance(configured, list) else [configured]
    return {token for token in (*configured_tokens, tokenizer.eos_token_id) if token is not None}


def _load(name: str, gpus: int | None) -> tuple[Any, Any]:
    """Tokenizer and model, in evaluation mode; ModelError where they cannot be loaded."""
    import torch

    from cdp.retrievers.load import load_decoder

    use_gpu = gpus != 0 and torch.cuda.is_available()
    # Only where several were asked for: layers on another GPU cost a transfer per token.
    spread = use_gpu and (gpus or 1) > 1
    dtype = "auto" if use_gpu else torch.float32
    tokenizer, model = load_decoder(locate(name, "model", HINT), dtype, spread=spread)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token_id = 0

    placed: Any = model
    if not spread:
        placed = placed.to("cuda" if use_gpu else "cpu")
    return tokenizer, placed.eval()


GENERATOR = GeneratorType(
    "transformers",
    "Local model",
    "A local instruct model, on a GPU where there is one",
    lambda config, api_key: LocalModelGenerator(config),
    model="mistralai/Mistral-7B-Instruct-v0.3",
    local=True,
    reads=frozenset({"model", "temperature", "max_output_tokens", "batch_size", "seed"}),
    order=40,
)
