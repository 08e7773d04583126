"""The paper's AdamW and cosine decay, averaging gradients over processes, repeatable CPU runs."""

from __future__ import annotations

import ctypes
import inspect
import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from accelerate import Accelerator, PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import broadcast, reduce
from torch import Tensor, nn

BETAS = (0.9, 0.98)
EPSILON = 1e-8


class _AdamW(torch.optim.AdamW):
    """torch's own, without the wrappers for a compiler that is not used here. The first call of any of them loads that
    compiler: 2 of the 5.5 CPU seconds of a short training. Between them the wrappers do no more than ``no_grad``."""

    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    state_dict = inspect.unwrap(torch.optim.AdamW.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.AdamW.load_state_dict)
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)

    def step(self, closure: Any = None) -> Any:
        with torch.no_grad():
            return _step(self, closure)


_step = inspect.unwrap(torch.optim.AdamW.step)


def adamw(model: nn.Module, learning_rate: float, weight_decay: float) -> torch.optim.AdamW:
    """AdamW, β 0.9/0.98, ε 1e-8. Biases and normalisation weights are not decayed, as is usual for transformers."""
    decayed: list[Tensor] = []
    plain: list[Tensor] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            (decayed if parameter.ndim > 1 else plain).append(parameter)
    parts = [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]
    fused = all(p.device.type in ("cpu", "cuda") and p.is_floating_point() for p in (*decayed, *plain))
    return _AdamW([part for part in parts if part["params"]], lr=learning_rate, betas=BETAS, eps=EPSILON, fused=fused)


def cosine_rate(peak: float, step: int, steps: int) -> float:
    """The learning rate of step ``step`` (from 0) of ``steps``: cosine decay from the peak to 0, no warm-up."""
    return peak * 0.5 * (1.0 + math.cos(math.pi * step / max(1, steps)))


def accelerator_for(device: torch.device, precision: str) -> Accelerator:
    """Return accelerate's mixed precision and synchronisation for one training; ``precision`` is fp32, fp16 or bf16."""
    # accelerate keeps the first precision of a process, and a study trains in several.
    AcceleratorState._reset_state()
    return Accelerator(mixed_precision="no" if precision == "fp32" else precision, cpu=device.type == "cpu")


def average_gradients(parameters: Iterable[Tensor]) -> None:
    """Average ``.grad`` over all processes. A parameter without a gradient on this process counts as zero.

    Done here and not by DDP, which does not synchronise a model with unused parameters (a BERT's pooler) unless told to
    look for them, and which takes one forward pass per step where we have several.
    """
    if PartialState().use_distributed:
        for parameter in parameters:
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = reduce(gradient, "mean")


def broadcast_parameters(model: nn.Module) -> None:
    """Give every process the first process's weights, so that they start equal whatever was initialised at random."""
    broadcast([tensor.data for tensor in (*model.parameters(), *model.buffers())])


def keep_freed_memory() -> bool:
    """Tell glibc to keep freed blocks instead of returning each large one to the kernel. True if it took it.

    Training on a CPU frees and asks for the same large tensors in every step; giving them back each time means that
    the kernel maps and zeroes the same pages over and over, which can cost more than the arithmetic.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL("libc.so.6")
        m_trim_threshold, m_mmap_max = -1, -4
        return bool(libc.mallopt(m_mmap_max, 0)) and bool(libc.mallopt(m_trim_threshold, 2**31 - 1))
    except (OSError, AttributeError):
        return False


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """On a CPU: the same data, seed and number of threads give the same weights, bit for bit.

    Without this torch adds up the gradients of a document that stands in several pairs in whatever order its threads
    arrive. On a GPU it is left alone: there several libraries' sums would have to be ordered, at a price in speed.
    """
    if device.type != "cpu":
        yield
        return
    mode = torch.get_deterministic_debug_mode()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    torch.set_deterministic_debug_mode("warn")  # an operation without such a form goes on, and says so in the log
    torch.utils.deterministic.fill_uninitialized_memory = False  # it only helps to find reads of unwritten memory
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        torch.utils.deterministic.fill_uninitialized_memory = filled
