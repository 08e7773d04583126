"""The loop in process: resuming to the same weights, edge cases, divergence. Tiny models, real files."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError, ConfigError, ModelError
from cdp.base.workspace import read_json, write_json
from cdp.training.checkpoint import latest, load, under
from cdp.training.engine import Batches, cosine_rate
from cdp.training.loop import Outcome, Training, add_lora
from cdp.training.pairs import BatchOrder
from cdp.training.tokens import tokenise
from tests.support_models import tiny_retriever, tiny_static

WORDS = ("glacier", "volcano", "harbour", "orchard", "telescope", "bakery", "railway", "beehive")
QUERIES = [f"{verb} {word}" for word in WORDS for verb in ("find", "explain", "compare")]
DOCUMENTS = [f"all about the {word} " + word[::-1] * (i + 1) for i, word in enumerate(WORDS)]
DOCUMENT_OF = np.repeat(np.arange(len(WORDS)), 3)


class Recorder:
    """Hooks that remember the lines, and stop or crash after a number of steps."""

    def __init__(self, stop_after: int | None = None, crash_after: int | None = None) -> None:
        self.lines: list[dict[str, Any]] = []
        self.steps = 0
        self.stop_after, self.crash_after = stop_after, crash_after

    def log(self, step: int, **values: float | int | None) -> None:
        self.lines.append({"step": step, **values})

    def progress(self, step: int, steps: int, message: str) -> None:
        self.steps += 1
        if self.steps == self.crash_after:
            raise RuntimeError("the power went out")

    def stop_requested(self) -> bool:
        return self.steps == self.stop_after


def train(
    folder: Path, source: Path, hooks: Recorder | None = None, evaluate: Any = None, **settings: Any
) -> tuple[SentenceTransformer, Outcome]:
    values = {"learning_rate": 3e-3, "batch_size": 6, "epochs": 5, "scale": 20.0, "save_steps": 4, "weight_decay": 0.01}
    reasoned, weights = settings.pop("reasoned", None), settings.pop("weights", np.arange(24.0) % 5)
    values |= settings
    # Beyond what may be set: some of these runs are to fail.
    rate = {"learning_rate": values.pop("learning_rate")}
    config = TrainingConfig.from_dict({"query_set": "q", **values}).model_copy(update=rate)
    model = SentenceTransformer(str(source), device="cpu")
    queries, documents, thought = (t and tokenise(model, t) for t in (QUERIES, DOCUMENTS, reasoned))
    if config.loop.lora_rank:
        torch.manual_seed(config.seed)
        add_lora(model, config.loop.lora_rank)
    batches = Batches(queries, documents, DOCUMENT_OF, weights, thought)
    order = BatchOrder(len(QUERIES), config.loop.batch_size or 1, config.loop.epochs or 1, config.seed)
    training = Training(model, batches, order, config, hooks or Recorder(), folder, evaluate=evaluate)
    return model, training.run()


def source(kind: str, folder: Path) -> Path:
    return tiny_static(folder / "tiny") if kind == "static" else tiny_retriever(folder / "tiny", dropout=0.2)


THREE: dict[str, Any] = {"epochs": 3}
GRADCACHE: dict[str, Any] = {**THREE, "mini_batch": 3}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, SentenceTransformer, Outcome]]:
    """A model, and what an uninterrupted run makes of it: once for each kind."""

    @functools.cache
    def trained(kind: str) -> tuple[Path, SentenceTransformer, Outcome]:
        folder = tmp_path_factory.mktemp(kind)
        model = source(kind, folder)
        return model, *train(folder / "whole", model, **(GRADCACHE if kind == "gradcache" else THREE))

    return trained


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("static", "stopped"),
        ("static", "crashed"),
        ("transformer", "stopped"),
        ("transformer", "crashed"),
        ("gradcache", "stopped"),
    ],
)
def test_resuming_reaches_the_weights_of_an_uninterrupted_run_bit_for_bit(
    unbroken: Callable[[str], tuple[Path, SentenceTransformer, Outcome]], tmp_path: Path, kind: str, how: str
) -> None:
    settings = GRADCACHE if kind == "gradcache" else THREE
    model, whole, outcome = unbroken(kind)

    torch.manual_seed(99)
    if how == "stopped":
        _, stopped = train(tmp_path / "parts", model, Recorder(stop_after=7), **settings)
        assert (stopped.step, stopped.stopped) == (7, True)
    else:
        with pytest.raises(RuntimeError, match="power"):
            train(tmp_path / "parts", model, Recorder(crash_after=7), **settings)
        checkpoint = latest(tmp_path / "parts")
        assert checkpoint is not None
        assert checkpoint.name == "step-000000004"
    torch.manual_seed(7)
    resumed, end = train(tmp_path / "parts", model, **settings)

    assert (end.step, end.stopped, end.masked) == (12, False, outcome.masked)
    assert end.first_losses == outcome.first_losses
    for (name, value), expected in zip(resumed.state_dict().items(), whole.state_dict().values(), strict=True):
        assert torch.equal(value, expected), name
    untrained = SentenceTransformer(str(model), device="cpu").state_dict()
    assert any(not torch.equal(value, untrained[name]) for name, value in whole.state_dict().items())


@pytest.mark.slow
def test_another_seed_gives_another_model_and_the_same_seed_the_same(tmp_path: Path) -> None:
    model = source("transformer", tmp_path)
    runs = [train(tmp_path / str(i), model, seed=seed, epochs=1)[0].state_dict() for i, seed in enumerate((1, 1, 2))]
    same, other = (
        all(torch.equal(value, run[name]) for name, value in runs[0].items()) for run in (runs[1], runs[2])
    )  # fmt: skip
    assert (same, other) == (True, False)


@pytest.mark.slow
def test_documents_that_repeat_in_a_batch_leave_the_weights_repeatable(tmp_path: Path) -> None:
    """Their gradients are added up by several threads: in any order, unless told otherwise.

    Two runs differ only where the threads really overlap, so the mode itself is asked for as well.
    """
    path = tiny_static(tmp_path / "tiny", dimension=256)
    repeats = np.random.default_rng(0).integers(0, len(WORDS), 600)
    texts = [QUERIES[3 * d + i % 3] for i, d in enumerate(repeats)]

    class Modes(Recorder):
        def progress(self, step: int, steps: int, message: str) -> None:
            assert torch.are_deterministic_algorithms_enabled()

    def weights() -> bytes:
        model = SentenceTransformer(str(path), device="cpu")
        batches = Batches(tokenise(model, texts), tokenise(model, DOCUMENTS), repeats, np.ones(len(texts)))
        config = TrainingConfig(query_set="q", learning_rate=3e-3, scale=20.0, epochs=5)
        order = BatchOrder(len(texts), 600, 5, 0)
        Training(model, batches, order, config, Modes(), tmp_path / "none", keep=False).run()
        return model[0].embedding.weight.detach().numpy().tobytes()

    assert len({weights() for _ in range(2)}) == 1
    assert not torch.are_deterministic_algorithms_enabled()  # left as it was


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    model = source("static", tmp_path)
    train(tmp_path / "run", model, Recorder(stop_after=3))
    with pytest.raises(ConfigError, match="other data or weights, another batch size"):
        train(tmp_path / "run", model, batch_size=4)
    with pytest.raises(ConfigError, match="other data or weights"):
        train(tmp_path / "run", model, weights=np.arange(24.0) % 6)
    train(tmp_path / "run", model)  # as it was, it goes on


def test_one_process_goes_on_where_two_were(tmp_path: Path) -> None:
    model = source("static", tmp_path)
    whole, _ = train(tmp_path / "whole", model)
    train(tmp_path / "run", model, Recorder(stop_after=3))
    saved = latest(tmp_path / "run")
    assert saved is not None
    facts = read_json(saved / "state.json")
    write_json(saved / "state.json", {**facts, "order": {**facts["order"], "processes": 2}})
    resumed, _ = train(tmp_path / "run", model)
    for name, weights in whole.state_dict().items():
        assert torch.equal(weights, resumed.state_dict()[name]), name


def test_metrics_tell_every_step_and_the_schedule_is_a_cosine(tmp_path: Path) -> None:
    hooks = Recorder()
    _, outcome = train(tmp_path / "run", source("static", tmp_path), hooks)
    assert [line["step"] for line in hooks.lines] == list(range(1, 21))
    rates = [line["learning_rate"] for line in hooks.lines]
    assert rates == pytest.approx([3e-3 * 0.5 * (1 + np.cos(np.pi * i / 20)) for i in range(20)])
    assert cosine_rate(1.0, 10, 20) == pytest.approx(0.5)
    assert sum(line["masked"] for line in hooks.lines) == outcome.masked > 0
    assert all(line["gradient_norm"] > 0 and line["pairs_per_second"] > 0 for line in hooks.lines)


def test_the_best_model_by_evaluation_is_kept(tmp_path: Path) -> None:
    seen: list[dict[str, torch.Tensor]] = []

    def evaluate(model: SentenceTransformer) -> float:
        assert not model.training
        seen.append({name: value.clone() for name, value in model.state_dict().items()})
        return (0.2, 0.9, 0.4, 0.3)[len(seen) - 1]

    model, outcome = train(tmp_path / "run", source("static", tmp_path), evaluate=evaluate, eval_steps=5)
    assert (outcome.best_step, outcome.best_score) == (10, 0.9)
    assert [line["ndcg@10"] for line in outcome.evaluations] == pytest.approx([20.0, 90.0, 40.0, 30.0])
    assert all(torch.equal(value, seen[1][name]) for name, value in model.state_dict().items())


def test_training_ends_early_after_so_many_evaluations_without_a_better_one(tmp_path: Path) -> None:
    scores = iter((0.5, 0.6, 0.6, 0.1, 0.9))
    _, outcome = train(
        tmp_path / "run", source("static", tmp_path), evaluate=lambda model: next(scores), eval_steps=3, patience=2
    )
    assert (outcome.step, outcome.early, outcome.stopped, outcome.best_step) == (12, True, False, 6)


@pytest.mark.parametrize("at", [10, 20])
def test_an_evaluation_that_was_stopped_midway_is_made_on_resuming(tmp_path: Path, at: int) -> None:
    """Whether it was one on the way or the last: the best step is then that of a run that was never stopped."""
    folder, hooks = source("static", tmp_path), Recorder()
    scores = {5: 0.3, 10: 0.9, 15: 0.2, 20: 0.95}

    def stopping(model: SentenceTransformer) -> float | None:
        if hooks.steps == at:
            hooks.stop_after = at
            return None
        return scores[hooks.steps]

    _, stopped = train(tmp_path / "run", folder, hooks, evaluate=stopping, eval_steps=5)
    assert (stopped.step, stopped.stopped) == (at, True)
    assert at not in [evaluation["step"] for evaluation in stopped.evaluations]
    left = [scores[step] for step in scores if step >= at][::-1]
    _, outcome = train(tmp_path / "run", folder, evaluate=lambda model: left.pop(), eval_steps=5)
    assert {e["step"]: e["ndcg@10"] / 100 for e in outcome.evaluations} == pytest.approx(scores)
    assert (outcome.step, outcome.stopped, outcome.best_step) == (20, False, 20)


def test_a_run_that_ended_early_does_not_go_on_when_it_is_resumed(tmp_path: Path) -> None:
    """As after a disk that was full when the model was to be saved."""
    folder = source("static", tmp_path)
    scores = iter((0.5, 0.4))
    train(tmp_path / "run", folder, evaluate=lambda model: next(scores), eval_steps=3, patience=1)
    hooks = Recorder()
    _, outcome = train(tmp_path / "run", folder, hooks, evaluate=lambda model: next(scores), eval_steps=3, patience=1)
    assert (outcome.step, outcome.early, hooks.steps) == (6, True, 0)


@pytest.mark.slow
def test_lora_trains_only_its_additions_resumes_and_is_merged_into_a_plain_model(tmp_path: Path) -> None:
    folder = tiny_retriever(tmp_path / "tiny")
    plain = SentenceTransformer(str(folder), device="cpu")
    parts, _ = train(tmp_path / "parts", folder, Recorder(stop_after=7), lora_rank=2, learning_rate=0.05, **THREE)
    checkpoint = latest(tmp_path / "parts")
    assert checkpoint is not None
    saved = under("model", load(checkpoint)[0])
    assert all("lora" in name for name in saved if "weight" in name)
    parts, _ = train(tmp_path / "parts", folder, lora_rank=2, learning_rate=0.05, **THREE)
    whole, _ = train(tmp_path / "whole", folder, lora_rank=2, learning_rate=0.05, **THREE)
    for (name, value), expected in zip(parts.state_dict().items(), whole.state_dict().values(), strict=True):
        assert torch.equal(value, expected), name

    before = whole.encode(QUERIES, convert_to_tensor=True)
    assert float((before - plain.encode(QUERIES, convert_to_tensor=True)).abs().max()) > 0.01
    whole[0].model = whole[0].model.merge_and_unload()
    whole.save(str(tmp_path / "saved"), create_model_card=False)
    merged = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    torch.testing.assert_close(merged.encode(QUERIES, convert_to_tensor=True), before, rtol=1e-4, atol=1e-4)
    assert merged.state_dict().keys() == plain.state_dict().keys()


@pytest.mark.slow
def test_a_batch_larger_than_the_data_trains_on_all_of_it_each_step(tmp_path: Path) -> None:
    _, outcome = train(tmp_path / "run", source("transformer", tmp_path), batch_size=1000)
    assert (outcome.steps, outcome.pairs_seen) == (5, 5 * 24)


def test_a_document_longer_than_the_models_length_is_cut_there(tmp_path: Path) -> None:
    model = SentenceTransformer(str(source("transformer", tmp_path)), device="cpu")
    model.max_seq_length = 16
    store = tokenise(model, ["word " * 500, "short"])
    assert store.lengths.tolist()[0] == 16 > store.lengths.tolist()[1]


def test_a_gradient_above_the_norm_is_clipped(tmp_path: Path) -> None:
    hooks = Recorder()
    train(tmp_path / "run", source("static", tmp_path), hooks, clip_norm=1e-6)
    assert all(np.isfinite(line["loss"]) for line in hooks.lines)


def test_every_step_that_fp16_skips_is_counted_and_too_many_in_a_row_are_divergence(tmp_path: Path) -> None:
    """What the scaler has left of each step, a line of the log at a time; the scaler itself needs no GPU to be on."""
    model = SentenceTransformer(str(source("static", tmp_path)), device="cpu")
    stores = [tokenise(model, texts) for texts in (QUERIES, DOCUMENTS)]
    config = TrainingConfig(query_set="q", learning_rate=1e-3, batch_size=6, epochs=20, scale=20.0)
    order = BatchOrder(24, 6, 20)
    training = Training(model, Batches(*stores, DOCUMENT_OF, np.ones(24)), order, config, Recorder(), tmp_path / "run")
    training.accelerator.scaler = torch.amp.GradScaler("cpu", enabled=True)

    def log(norms: list[float]) -> None:
        training.outcome.step += len(norms)
        training._log([(torch.tensor(1.0), torch.tensor(norm)) for norm in norms], 1e-3, 0.1)

    infinite = float("inf")
    log([infinite, infinite, 0.5, infinite, 3.0])
    assert training.outcome.skipped == 3
    log([infinite] * 10)
    with pytest.raises(ConfigError, match="the gradient is no longer a finite number at step 25 of 80"):
        log([infinite] * 12)


def test_a_short_run_compares_the_losses_of_its_halves(tmp_path: Path) -> None:
    hooks = Recorder()
    _, outcome = train(tmp_path / "run", source("static", tmp_path), hooks, epochs=1)
    losses = [line["loss"] for line in hooks.lines]
    assert (outcome.first_losses, outcome.last_losses) == (losses[:2], losses[2:])


def test_divergence_is_named_with_its_step_and_leaves_no_new_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"diverged: the loss .* at step [23] of 20"):
        train(tmp_path / "run", source("transformer", tmp_path), learning_rate=1e38)
    assert latest(tmp_path / "run") is None


def test_a_model_that_is_broken_from_the_start_is_said_to_be(tmp_path: Path) -> None:
    folder = source("static", tmp_path)
    model = SentenceTransformer(str(folder), device="cpu")
    with torch.no_grad():
        model[0].embedding.weight.fill_(float("nan"))
    model.save(str(folder), create_model_card=False)
    with pytest.raises(ModelError, match="before any training"):
        train(tmp_path / "run", folder)


def test_fp16_needs_a_gpu(tmp_path: Path) -> None:
    with pytest.raises(CdpError, match="fp16 needs a GPU"):
        train(tmp_path / "run", source("transformer", tmp_path), precision="fp16")


@pytest.mark.slow
def test_bf16_on_a_cpu_trains(tmp_path: Path) -> None:
    _, outcome = train(tmp_path / "run", source("transformer", tmp_path), precision="bf16", **THREE)
    assert outcome.last_losses[-1] < outcome.first_losses[0]
