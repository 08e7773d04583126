"""The training loop: steps, dev evaluation and best model, patience, LoRA, divergence, live metrics, checkpoints,
resuming, a clean stop.

The order of the pairs, the random state and the schedule follow from the seed and the step alone, so a resumed run
reaches the weights that an uninterrupted one reaches. The loop knows no job folder: it talks through ``Hooks``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import psutil
import torch
from accelerate import PartialState
from accelerate.utils import broadcast
from numpy.typing import NDArray

from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError, ModelError
from cdp.base.failures import Streak
from cdp.base.text import Progress
from cdp.retrievers import DENSE, MULTI_VECTOR, SPARSE, TRAINED_SIMILARITY, ResolvedRetriever, load
from cdp.retrievers.load import kind_of
from cdp.training import checkpoint
from cdp.training.engine import (
    Batches,
    Engine,
    StaticEngine,
    TransformerEngine,
    accelerator_for,
    adamw,
    average_gradients,
    broadcast_parameters,
    cosine_rate,
    repeatable,
)
from cdp.training.infonce import FLOPS_DOCUMENTS, FLOPS_QUERIES, MaxSimInfoNCE, SparseInfoNCE, WeightedInfoNCE
from cdp.training.lower_layers import LowerLayers, StateStore, freeze_below
from cdp.training.pairs import BatchOrder, PairSet
from cdp.training.plan import eval_steps_of, order_of
from cdp.training.tokens import Stores

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from cdp.retrievers.static import TokenMemo


class Hooks(Protocol):
    """What the loop tells and asks its surroundings."""

    def log(self, step: int, **values: float | int | None) -> None:
        """A line of metrics."""

    def progress(self, step: int, steps: int, message: str) -> None:
        """How far the run is; called every step."""

    def stop_requested(self) -> bool:
        """Whether to stop after this step."""


@dataclass
class Outcome:
    """What a run did. ``step`` < ``steps`` if it was ``stopped``, or ``early``: because NDCG@10 stopped improving."""

    step: int = 0
    steps: int = 0
    stopped: bool = False
    early: bool = False
    seconds: float = 0.0
    pairs_seen: int = 0
    masked: int = 0
    skipped: int = 0
    first_losses: list[float] = field(default_factory=list)
    last_losses: list[float] = field(default_factory=list)
    best_score: float | None = None
    best_step: int | None = None
    evaluations: list[dict[str, float]] = field(default_factory=list)


def precision_of(config: TrainingConfig, device: torch.device) -> str:
    """fp32, fp16 or bf16: what ``auto`` means on this device."""
    if config.loop.precision != "auto":
        if device.type == "cpu" and config.loop.precision == "fp16":
            raise ConfigError("'precision' fp16 needs a GPU.", hint="Use auto, fp32 or bf16 on a CPU.")
        return config.loop.precision
    if device.type != "cuda":
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported() else "fp16"


def add_lora(model: SentenceTransformer, rank: int) -> None:
    """Freeze the model's weights and add trainable matrices of this rank to each linear layer (α = 2 · rank, no
    dropout). ModelError for a model that does not begin with a transformer."""
    from peft import LoraConfig, get_peft_model

    if not hasattr(model[0], "auto_model"):
        raise ModelError("LoRA needs a model that begins with a transformer.", hint="Leave lora_rank empty.")
    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, bias="none", target_modules="all-linear")
    model[0].model = get_peft_model(model.transformers_model, config)


# About so many metric lines per run: enough for a smooth chart, few enough to draw at once.
LOGGED_LINES = 400

# The first and the last loss of a run are means over so many steps, or over its halves if it is shorter.
ENDS = 10

# Of one step: the loss of this process's rows, and the gradient's norm before clipping; still on the device.
Measured = tuple[torch.Tensor, torch.Tensor]


class Training:
    """One run. ``config`` must be complete (``settings.complete``), the model on its device. ``keep=False`` leaves no
    checkpoint at the end."""

    def __init__(
        self,
        model: SentenceTransformer,
        batches: Batches,
        order: BatchOrder,
        config: TrainingConfig,
        hooks: Hooks,
        checkpoints: Path,
        *,
        evaluate: Callable[[SentenceTransformer], float | None] | None = None,
        keep: bool = True,
    ) -> None:
        assert config.learning_rate is not None
        self.model, self.order, self.config, self.hooks = model, order, config, hooks
        self.checkpoints, self.evaluate, self.keep = checkpoints, evaluate, keep
        self.device = model.device
        self.precision = precision_of(config, self.device)
        self.accelerator = accelerator_for(self.device, self.precision)
        self.process = self.accelerator.process_index
        broadcast_parameters(model)
        torch.manual_seed(config.seed + self.process)

        if config.loop.gradient_checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})

        self.data_hash = batches.content_hash

        if (kind := kind_of(model)) != DENSE and self.accelerator.num_processes > 1:
            raise ConfigError(f"A {kind} retriever is trained by one process.", hint="Set gpus to 1.")

        self.loss = _loss(model, config)
        self.engine: Engine

        if StaticEngine.fits(model):
            self.engine = StaticEngine(model, batches, self.loss, self.accelerator.backward)
        else:
            self.engine = TransformerEngine(
                model, batches, self.loss, mini_batch=config.loop.mini_batch, autocast=self.accelerator.autocast,
                propagate=self.accelerator.backward,
            )  # fmt: skip

        self.parameters = [p for p in model.parameters() if p.requires_grad]
        optimiser = adamw(model, config.learning_rate, config.loop.weight_decay)
        self.optimiser = self.accelerator.prepare_optimizer(optimiser)
        self.eval_steps = eval_steps_of(config, order.steps)
        self.outcome = Outcome(steps=order.steps)
        self._ends = max(1, min(ENDS, order.steps // 2))
        self._skipped = Streak()  # FP16 steps before a run is taken to have diverged
        self._masked_before = 0

    def run(self) -> Outcome:
        """Train from the last checkpoint, or from the start, to the end or to a stop."""
        with repeatable(self.device):
            return self._run()

    def _run(self) -> Outcome:
        self._resume()
        outcome = self.outcome
        log_every = max(1, outcome.steps // LOGGED_LINES)
        self.model.train()
        began = mark = time.perf_counter()
        before = outcome.seconds
        pending: list[Measured] = []

        # After a stop within an evaluation: it is taken up again, so that the best step is that of an unstopped run.
        if self._agree(self._cut_off):
            self._evaluate()
            outcome.early = self._agree(self._out_of_patience()) and outcome.step < outcome.steps

        for rows in () if outcome.early else self.order.batches(outcome.step, self.process):
            if self._agree(self.hooks.stop_requested()):
                outcome.stopped = True
                break

            rate = cosine_rate(self.optimiser.defaults["lr"], outcome.step, outcome.steps)
            pending.append(self._step(rows, rate))
            outcome.step += 1
            outcome.pairs_seen += self.order.global_rows
            outcome.seconds = before + time.perf_counter() - began

            last = outcome.step == outcome.steps
            saving = outcome.step % self.config.loop.save_steps == 0 and not last
            judging = self._to_be_evaluated
            # What is kept or judged is checked first: a log line looks at every step since the one before.
            if outcome.step % log_every == 0 or outcome.step == 1 or saving or judging or last:
                now = time.perf_counter()
                self._log(pending, rate, (now - mark) / len(pending))
                pending, mark = [], now

            status = f"epoch {self._epoch()}" + (f" of {self.config.loop.epochs}" if self.order.total is None else "")
            self.hooks.progress(outcome.step, outcome.steps, status)

            if judging:
                self._evaluate()
                mark = time.perf_counter()
                if self._agree(self._out_of_patience()) and not last:
                    outcome.early = True
                    break

            if saving:
                self.save()

        if pending:
            self._log(pending, rate, (time.perf_counter() - mark) / len(pending))

        outcome.stopped = outcome.stopped or self._agree(self._cut_off)
        outcome.seconds = before + time.perf_counter() - began

        if self.keep:
            self.save()
        if self.process == 0 and outcome.best_step not in (None, outcome.step):
            self.model.load_state_dict(checkpoint.load_tensors(self.checkpoints / "best"), strict=False)

        self.model.eval()
        return outcome

    def _step(self, rows: NDArray[np.int64], rate: float) -> Measured:
        """One update; the loss of this process's rows and the gradient's norm before clipping."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.loss.begin_step(self.outcome.step, self.outcome.steps)
        loss = self.engine.backward(rows)
        average_gradients(self.parameters)
        norm = self._clip(self.config.loop.clip_norm or math.inf)
        if self.device.type == "cpu":  # looking costs nothing here, and spares the weights
            self._check(float(loss), float(norm), self.outcome.step + 1)
        self.optimiser.step()
        return loss, norm.detach()

    def _clip(self, limit: float) -> torch.Tensor:
        """Scale the gradients to a norm of at most ``limit``; return their norm before."""
        alone = self.accelerator.num_processes == 1 and self.accelerator.scaler is None
        if alone and isinstance(self.engine, StaticEngine):
            return self.engine.clip(limit)
        norm: torch.Tensor = self.accelerator.clip_grad_norm_(self.parameters, limit)
        return norm

    def _check(self, loss: float, norm: float, step: int) -> None:
        """Fail clearly where training has diverged at this step (from 1), before its weights are saved or judged."""
        if math.isfinite(loss) and math.isfinite(norm):
            self._skipped.end()
            return

        what = "gradient" if math.isfinite(loss) else "loss"
        if self.accelerator.scaler is not None and what == "gradient":
            # FP16 overflows now and then; the scaler has skipped the step and lowered its scale.
            self.outcome.skipped += 1
            if not self._skipped.add():
                return

        if step == 1:
            raise ModelError(
                f"The model gives a {what} that is no finite number before any training.",
                hint="Are its weights whole? Try precision fp32.",
            )

        raise ConfigError(
            f"Training diverged: the {what} is no longer a finite number at step {step} of {self.outcome.steps} "
            f"(learning rate {self.config.learning_rate:g}, {self.precision}).",
            hint="Lower the learning rate or the scale, or use bf16 or fp32; the last checkpoint is from before it.",
        )

    def _log(self, pending: list[Measured], rate: float, step_seconds: float) -> None:
        """Check the steps since the last line, count what happened in them, and write a line over them."""
        outcome = self.outcome
        masked = torch.tensor([float(self.loss.masked_total - self._masked_before)], device=self.device)
        values = torch.cat([torch.stack([loss.float() for loss, _ in pending]), masked])
        values = self.accelerator.reduce(values, "sum")
        values[:-1] /= self.accelerator.num_processes
        self._masked_before = self.loss.masked_total

        *losses, newly_masked = values.tolist()
        norms = torch.stack([norm for _, norm in pending]).tolist()
        for step, (loss, norm) in enumerate(zip(losses, norms, strict=True), start=outcome.step - len(pending) + 1):
            self._check(loss, norm, step)

        outcome.masked += int(newly_masked)
        outcome.first_losses += losses[: self._ends - len(outcome.first_losses)]
        outcome.last_losses = (outcome.last_losses + losses)[-self._ends :]
        memory = torch.cuda.max_memory_allocated() / 2**20 if self.device.type == "cuda" else None
        self.hooks.log(
            outcome.step,
            loss=sum(losses) / len(losses),
            learning_rate=rate,
            gradient_norm=norms[-1],
            pairs_per_second=self.order.global_rows / max(step_seconds, 1e-9),
            masked=int(newly_masked),
            epoch=self._epoch(),
            memory_mib=psutil.Process().memory_info().rss / 2**20,
            gpu_memory_mib=memory,
        )

    def _epoch(self) -> int:
        """The epoch under way, from 1."""
        return (max(self.outcome.step, 1) - 1) // self.order.steps_per_epoch + 1

    def _agree(self, flag: bool) -> bool:
        """The first process's answer, on every process."""
        if self.accelerator.num_processes == 1:
            return flag
        return bool(broadcast(torch.tensor([int(flag)], device=self.device)).item())

    @property
    def _to_be_evaluated(self) -> bool:
        """Whether the model is to be judged after the present step."""
        step = self.outcome.step
        return self.evaluate is not None and step > 0 and (step % self.eval_steps == 0 or step == self.order.steps)

    @property
    def _cut_off(self) -> bool:
        """Whether the evaluation of the present step was begun and stopped midway. The first process knows."""
        done = self.outcome.evaluations
        return self._to_be_evaluated and not (done and done[-1]["step"] == self.outcome.step)

    def _evaluate(self) -> None:
        """NDCG@10 on the dev benchmark; the best weights so far are kept."""
        outcome = self.outcome
        assert self.evaluate is not None

        if self.process == 0:
            self.model.eval()
            score = self.evaluate(self.model)
            self.model.train()
        else:
            score = None

        if score is not None:
            self.hooks.log(outcome.step, ndcg_at_10=100 * score)
            outcome.evaluations.append({"step": outcome.step, "ndcg@10": 100 * score})
            if outcome.best_score is None or score > outcome.best_score:
                outcome.best_score, outcome.best_step = score, outcome.step
                weights = self._weights()
                checkpoint.write_folder(
                    self.checkpoints / "best", lambda folder: checkpoint.write_tensors(folder, weights)
                )

        self.accelerator.wait_for_everyone()

    def _out_of_patience(self) -> bool:
        """Whether the last ``patience`` evaluations were all no better than the best before them."""
        done = [int(evaluation["step"]) for evaluation in self.outcome.evaluations]
        patience = self.config.loop.patience
        return patience is not None and sum(step > (self.outcome.best_step or 0) for step in done) >= patience

    def _weights(self) -> dict[str, torch.Tensor]:
        """What training changes: everything, or with frozen weights (LoRA) only the rest."""
        frozen = {name for name, parameter in self.model.named_parameters() if not parameter.requires_grad}
        return {name: value for name, value in self.model.state_dict().items() if name not in frozen}

    def save(self) -> None:
        """Write a checkpoint of the current step."""
        state = {name: value.to(self.device)[None] for name, value in checkpoint.random_state().items()}
        random_states = self.accelerator.gather(state)

        if self.process == 0:
            tensors = checkpoint.named("model", self._weights())
            for index, moments in self.optimiser.state_dict()["state"].items():
                tensors |= checkpoint.named(f"optimiser.{index}", moments)

            tensors |= checkpoint.named("random", random_states)
            scaler = self.accelerator.scaler
            facts = {
                "scaler": scaler.state_dict() if scaler is not None else {},
                "outcome": asdict(self.outcome),
                "order": asdict(self.order),
                "data": self.data_hash,
            }
            checkpoint.save(self.checkpoints, self.outcome.step, tensors, facts)

        self.accelerator.wait_for_everyone()

    def _resume(self) -> None:
        latest = checkpoint.latest(self.checkpoints)
        if latest is None:
            return

        tensors, facts = checkpoint.load(latest)

        try:
            before, outcome = BatchOrder(**facts["order"]), Outcome(**{**facts["outcome"], "stopped": False})
            data_hash, scaler = facts["data"], dict(facts["scaler"])
        except (KeyError, TypeError, ValueError) as error:
            raise checkpoint.damaged(latest, error) from error

        order = self.order.resume_from(before)
        if order is None or data_hash != self.data_hash:
            raise ConfigError(
                "The checkpoint was made with other data or weights, another batch size, seed or number of processes.",
                hint="Start a new training instead of resuming this one.",
            )

        self.order = order
        self.model.load_state_dict(checkpoint.under("model", tensors), strict=False)
        optimiser = self.optimiser.state_dict()
        count = sum(len(group["params"]) for group in optimiser["param_groups"])
        optimiser["state"] = {i: checkpoint.under(f"optimiser.{i}", tensors) for i in range(count)}
        self.optimiser.load_state_dict(optimiser)

        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(scaler)

        self.outcome = outcome

        # With another number of processes each keeps the state that its seed gives.
        if before.processes == order.processes:
            random_states = checkpoint.under("random", tensors)
            checkpoint.restore_random_state({name: value[self.process] for name, value in random_states.items()})


def base_model(
    retriever: ResolvedRetriever, config: TrainingConfig, device: str, memo: TokenMemo | None = None
) -> SentenceTransformer:
    """The untrained model, with the random state that the training's seed gives. ``memo`` as for ``load``."""
    torch.manual_seed(config.seed)
    return load(retriever, device, config.loop.max_length, memo=memo, to_train=True)


def loss_for(model: SentenceTransformer) -> type[WeightedInfoNCE]:
    """Return the loss of a retriever's kind."""
    return {DENSE: WeightedInfoNCE, MULTI_VECTOR: MaxSimInfoNCE, SPARSE: SparseInfoNCE}[kind_of(model)]


def _loss(model: SentenceTransformer, config: TrainingConfig) -> WeightedInfoNCE:
    loop = config.loop
    assert loop.scale is not None
    loss = loss_for(model)(loop.scale, gather_across_devices=True, ri_kappa=loop.ri_kappa, distil=loop.distil)

    if isinstance(loss, SparseInfoNCE):
        loss.of_queries = FLOPS_QUERIES if loop.query_sparsity is None else loop.query_sparsity
        loss.of_documents = FLOPS_DOCUMENTS if loop.document_sparsity is None else loop.document_sparsity

    return loss


@dataclass(frozen=True)
class States:
    """Where the states below the trained layers are kept, the hash of the untrained model, and who hears of them."""

    root: Path
    identity: str
    report: Progress


def make_retriever(
    model: SentenceTransformer,
    config: TrainingConfig,
    pairs: PairSet,
    stores: Stores,
    weights: NDArray[np.float64],
    hooks: Hooks,
    checkpoints: Path,
    *,
    processes: int = 1,
    evaluate: Callable[[SentenceTransformer], float | None] | None = None,
    states: States | None = None,
) -> Training:
    """Train ``model`` in place on tokenised pairs, ``weights`` (n_pairs,) raw; return the run that did it.

    The model ends as it is to be scored and saved.

    ``config`` must be complete (``settings.complete``). ConfigError where a batch has no negatives. With
    ``trained_layers`` what the others give is kept where ``states`` says, else computed at each step.
    """
    if config.loop.lora_rank is not None:
        add_lora(model, config.loop.lora_rank)

    order = order_of(config, len(pairs), processes)
    read: list[Any] = [*stores]

    if config.loop.trained_layers is not None:
        freeze_below(model, config.loop.trained_layers)
        if states is not None and LowerLayers.fits(model):
            read = _with_states(model, config.loop.trained_layers, states, pairs, stores)

    queries, documents, reasoned = read
    batches = Batches(
        queries, documents, pairs.document_of, weights, reasoned, pairs.negatives, pairs.swapped, pairs.teacher,
        pairs.excluded_indices,
    )  # fmt: skip
    training = Training(model, batches, order, config, hooks, checkpoints, evaluate=evaluate)
    training.run()

    if config.loop.lora_rank is not None:
        # So that the model is saved and loaded like any other.
        model[0].model = model[0].model.merge_and_unload()

    if kind_of(model) == DENSE:
        # The loss compares by cosine, so dot products of these vectors mean nothing, even if the base used them.
        model.similarity_fn_name = TRAINED_SIMILARITY

    return training


def _with_states(
    model: SentenceTransformer, trained: int, states: States, pairs: PairSet, stores: Stores
) -> list[StateStore | None]:
    """Return the texts by what the frozen layers give for them; dev evaluations of the model find the same."""
    texts = {"query": pairs.queries, "document": pairs.documents, "reasoned query": pairs.reasoned}
    # The others find what the first has kept.
    with PartialState().main_process_first():
        lower = LowerLayers(model, trained, states.root, states.identity)
        read: list[StateStore | None] = []
        for (role, of_role), store in zip(texts.items(), stores, strict=True):
            if of_role is None or store is None:
                read.append(None)
                continue
            prompt = model.prompts[role.split()[-1]] or ""
            read.append(lower.states(of_role, prompt, store, partial(states.report, f"lower layers, {role}")))

    model.lower_layers = lower
    return read
