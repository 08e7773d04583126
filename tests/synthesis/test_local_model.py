"""The transformers generator on a tiny decoder: batches by length, its own seed per request, stop texts, limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ModelError
from cdp.base.records import Document
from cdp.llm.answers import Answer, Cancelled, RequestError
from cdp.llm.reader import until
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators import make_generator
from cdp.synthesis.generators.local_model import LocalModelGenerator, _answer, _Request, _Settings
from cdp.synthesis.methods import METHODS
from cdp.synthesis.run import SynthesisRun
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.models import tiny_writer

pytestmark = pytest.mark.slow
DOCUMENT = Document("d1", "Basalt is a dark rock. It forms when lava cools.", "Basalt")


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_writer(tmp_path_factory.mktemp("writer"))


def local(writer: Path, **settings: object) -> LocalModelGenerator:
    values = {"corpus": "c", "generator": "transformers", "model": str(writer), "max_output_tokens": 24, **settings}
    made = make_generator(SynthesisConfig.from_dict(values))
    assert isinstance(made, LocalModelGenerator)
    return made


def ask(made: LocalModelGenerator, prompt: str, method: str = "diverse", m: int = 2, sample: int = 0) -> str:
    return made.generate(prompt, DOCUMENT, METHODS[method], m, sample=sample).text


def test_greedy_answers_are_those_of_the_model_itself(writer: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    prompts = ["Short one.", "A prompt that is a good deal longer than the other ones are.", "Middle sized prompt."]
    made = local(writer, batch_size=4)
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda prompt: ask(made, prompt), prompts))
    tokenizer = AutoTokenizer.from_pretrained(writer)
    model = AutoModelForCausalLM.from_pretrained(writer, dtype=torch.float32).eval()
    for prompt, answer in zip(prompts, answers, strict=True):
        text = f"[user] {prompt}\n[assistant] "
        ids = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False)
        assert answer == tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True)
        assert answer


def test_tokens_are_counted_and_an_answer_at_the_limit_counts_as_cut_off(writer: Path) -> None:
    made = local(writer)
    answer = made.generate("Say something.", DOCUMENT, METHODS["diverse"], 2)
    assert answer.usage.input_tokens == len("[user] Say something.\n[assistant] ")
    assert 0 < answer.usage.output_tokens <= 24
    assert answer.usage.requests == 1
    assert answer.finish_reason == ("length" if answer.usage.output_tokens == 24 else "stop")


def test_a_sampled_answer_depends_on_its_seed_and_not_on_its_batch(writer: Path) -> None:
    prompts = ["One prompt.", "Quite another prompt, a longer one.", "And a third."]
    made = local(writer, temperature=0.9)
    alone = [ask(made, prompt) for prompt in prompts]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda prompt: ask(made, prompt), prompts)) == alone
    assert ask(local(writer, temperature=0.9, seed=1), prompts[0]) != alone[0]
    assert ask(made, prompts[0], "drama", 3, sample=1) != ask(made, prompts[0], "drama", 3, sample=2)


def test_special_tokens_that_mark_a_thought_reach_the_reader(writer: Path) -> None:
    """Magistral's [THINK] is a special token: dropped, the thought would pass for the answer."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(writer)
    tokenizer.add_special_tokens({"additional_special_tokens": ["[THINK]", "[/THINK]", "<extra_7>"]})
    text = "[THINK]hm, a draft[/THINK]<extra_7>What is it?</s>"
    row = tokenizer(text, add_special_tokens=False)["input_ids"]
    request = _Request((1,), 0, _Settings(64, 0.0, 1.0, ()))
    answer = _answer(tokenizer, row, request, {tokenizer.eos_token_id}, (), "m")
    assert answer.text == "[THINK]hm, a draft[/THINK]What is it?"
    assert (answer.reading.answer, answer.reading.thought) == ("What is it?", "hm, a draft")


def test_draws_follow_the_softmax(writer: Path) -> None:
    import torch

    from cdp.synthesis.generators.local_model import _Draw

    scores = torch.tensor([2.0, 1.0, 0.0, -1.0])
    n = 4000
    drawn = _Draw(range(n))(None, scores.repeat(n, 1)).argmax(-1)
    shares = torch.bincount(drawn, minlength=4) / n
    assert torch.allclose(shares, scores.softmax(-1), atol=0.03)


@pytest.mark.parametrize(
    ("text", "kept", "stopped"),
    [("a question\nanother", "a question", True), ("\na question", "a question", False), ("no end", "no end", False)],
)
def test_an_answer_ends_at_its_stop_text(text: str, kept: str, stopped: bool) -> None:
    assert until(text, ("\n",)) == (kept, stopped)


def test_a_prompt_too_long_for_the_model_fails_alone(tmp_path: Path) -> None:
    made = local(tiny_writer(tmp_path / "small", positions=64))
    with pytest.raises(RequestError, match="more than the 64"):
        ask(made, "x" * 100)
    assert ask(made, "short") is not None


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded"):
        local(tmp_path / "nothing").prepare()


def test_a_cancelled_generation_ends_soon(writer: Path) -> None:
    made = local(writer, max_output_tokens=1900)
    made.prepare()
    threading.Timer(0.3, made.cancel).start()
    with pytest.raises(Cancelled):
        all(ask(made, f"prompt {number}") is not None for number in range(1000))
    with pytest.raises(Cancelled):
        ask(made, "later")


def test_a_run_over_a_corpus_generates_or_lists_every_document(
    writer: Path, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    corpus = make_corpus(4)
    job = make_job(
        corpus=corpus.id, generator="transformers", model=str(writer), per_doc=2, batch_size=4, max_output_tokens=900,
        temperature=1.5, gpus=0,
    )  # fmt: skip
    result = SynthesisRun(job).execute()
    assert result["n_documents"] + result["failures"] == 4
    assert result["complete"]
    assert result["usage"]["output_tokens"] > 0
    manifest = query_sets.load(job.workspace, result["query_set"])
    assert (manifest.generator, manifest.model) == ("transformers", str(writer))
    again = SynthesisRun(make_job(**job.config)).execute()
    assert again["usage"]["requests"] == 0


def test_batches_hold_prompts_of_like_length_and_every_call_is_answered(
    writer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = local(writer, batch_size=4)
    batches: list[list[int]] = []

    def answers(requests: Sequence[Any]) -> list[Answer]:
        batches.append([len(request.tokens) for request in requests])
        time.sleep(0.01)
        if any(len(request.tokens) > 120 for request in requests):
            raise ValueError("too long")
        return [Answer(text=str(len(request.tokens))) for request in requests]

    monkeypatch.setattr(made, "_answers", answers)
    prompts = ["x" * ((i * 37) % 101) for i in range(64)]
    frame = len("[user] \n[assistant] ")
    with ThreadPoolExecutor(64) as pool:
        assert list(pool.map(lambda prompt: ask(made, prompt), prompts)) == [str(frame + len(p)) for p in prompts]
    assert max(map(len, batches)) <= 4
    assert sum(map(len, batches)) == 64
    assert sum(max(batch) - min(batch) for batch in batches) / len(batches) < 30
    with pytest.raises(ValueError, match="too long"):
        ask(made, "x" * 200)
    assert ask(made, "short") == str(frame + 5)


def test_queries_of_the_tiny_model_are_parsed_or_counted(writer: Path) -> None:
    generation = generate_for(DOCUMENT, METHODS["diverse"], 3, local(writer, max_output_tokens=40))
    assert len(generation.queries) == 3 or generation.problems["too_few"] == 3 - len(generation.queries)
    assert generation.raw
