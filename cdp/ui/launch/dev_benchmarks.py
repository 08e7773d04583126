"""The dev benchmark: what a training is judged by while it runs, and the rates of a sweep are compared on."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import benchmarks, sweeps
from cdp.ui.shell import project

NONE = ""


def options(workspace: Workspace) -> dict[str, tuple[str, str]]:
    """Name → (benchmark, split) of every usable one in the workspace, splits made for choosing first."""
    own = project.keep(workspace, "benchmark", benchmarks.list_benchmarks(workspace))
    usable_benchmarks = [b for b in own if b.splits and not b.problem]
    benchmark_splits = {f"{b.name}/{split}": (b.name, split) for b in usable_benchmarks for split in b.splits}
    return dict(sorted(benchmark_splits.items(), key=lambda item: item[1][1] not in sweeps.DEV_SPLITS))


def choose(workspace: Workspace, first: dict[str, Any], key: str) -> dict[str, str]:
    """The settings ``benchmark`` and ``split`` of a single training; empty where the last model is to be kept."""
    benchmark_splits = options(workspace)
    preset = (str(first.get("benchmark") or ""), str(first.get("split") or ""))
    if preset[0] and preset not in benchmark_splits.values():
        benchmark_splits["/".join(filter(None, preset))] = preset
    chosen = st.selectbox(
        "Dev benchmark",
        [NONE, *benchmark_splits],
        index=[("", ""), *benchmark_splits.values()].index(preset),
        format_func=lambda name: (
            " · ".join(filter(None, benchmark_splits[name])) if name else "none (keep the last model)"
        ),
        key=f"{key}_dev",
        help="Evaluated during training (every 500 steps; change it under More settings). The model with the "
        "best NDCG@10 is kept. Do not report results on this benchmark.",
        persist_state="session",
    )
    return {"benchmark": benchmark_splits[chosen][0], "split": benchmark_splits[chosen][1]} if chosen else {}
