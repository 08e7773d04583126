"""What a training will do and take: figures at once, time and memory after a few measured steps."""

from __future__ import annotations

import streamlit as st

from cdp.base.config import TrainingConfig
from cdp.base.workspace import Workspace
from cdp.services import jobs, training
from cdp.services.training import TrainingPlan, TrainingPreview
from cdp.ui.shell import access, frame, tables
from cdp.ui.shell.text import count, duration, md, number, size

KEPT = "training_preview"


def figures(plan: TrainingPlan, trainings: int = 1) -> None:
    """Pairs, documents, steps, and what to know of them."""
    tables.figures(
        ("Pairs", number(plan.pairs), "Each pair is a query and its document."),
        ("Documents", number(plan.documents)),
        ("Steps" if trainings == 1 else "Steps each", number(plan.steps), "Updates of the model's weights."),
        ("Trainings", number(trainings)) if trainings > 1 else None,
    )
    frame.remarks(plan.notes)


def licences(plan: TrainingPlan) -> None:
    """Whose terms apply."""
    with st.expander("Licences", icon=":material/gavel:", type="compact", key="train_licences"):
        st.markdown("\n".join(f"- **{what.capitalize()}**: {md(note)}" for what, note in plan.licences.items()))


def measured(workspace: Workspace, config: TrainingConfig, trainings: int = 1) -> None:
    """The button that measures, and what it found for just these settings."""
    settings = {name: value for name, value in config.to_dict().items() if name != "name"}
    if access.button(
        "Measure time and memory",
        icon=":material/timer:",
        key="train_measure",
        help="Loads the model in a separate process and runs four training steps.",
    ):
        with st.spinner("Loading the model and running a few steps"):
            st.session_state[KEPT] = (settings, training.preview(workspace, config))
    cached = st.session_state.get(KEPT)
    if cached is None or cached[0] != settings:
        return
    _show(cached[1], trainings)
    if jobs.list_active(workspace):
        st.caption(":material/info: Other jobs are running; without them, training is faster.")


def _show(preview: TrainingPreview, trainings: int) -> None:
    now = preview.measured
    where = "this machine" if now.device == "CPU" else f"the {now.device}"
    each = "" if trainings == 1 else " each"
    tables.figures(
        (
            f"Time{each}",
            duration(preview.seconds),
            f"{now.step_seconds:.3f} s per step, measured on {where}. Evaluations are not included.",
        ),
        (
            "Memory",
            size(now.memory_peak),
            f"Peak memory. {size(now.memory_free)} of {size(now.memory_total)} was free on {where}.",
        ),
        ("Trainable parameters", f"{now.trained_parameters / 1e6:,.1f} M"),
    )
    if preview.fits:
        st.caption(f":material/check: It fits: {size(now.memory_free)} of memory was free on {where}.")
    else:
        st.warning(
            f"Training needs {size(now.memory_peak)} of memory, but only {size(now.memory_free)} was free on "
            f"{where}. Use a smaller batch size or length, or GradCache (mini batch).",
            icon=":material/memory:",
        )
    left = [note for note in preview.plan.notes if note.startswith("Left out")]
    frame.remarks(left or [f"All {count(preview.plan.pairs, 'pair')} can be used."])
