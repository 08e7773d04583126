"""A sweep over learning rates: its grid and dev benchmark, and its start as a study."""

from __future__ import annotations

import streamlit as st

from cdp.base.config import TrainingConfig
from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.services import clusters, commands, leakage, studies, training
from cdp.services.studies import eval_steps_of, rate, read_rates
from cdp.ui.launch import training as training_form
from cdp.ui.shell import forms, frame, state
from cdp.ui.shell.tables import count

ONE, SWEEP, EVALUATION = "one", "sweep", "evaluation"
# Settings that a sweep chooses in its own way.
CHOSEN_HERE = ("learning_rate", "benchmark", "split")

MODES = {ONE: "Training", SWEEP: "Learning-rate sweep", EVALUATION: "Evaluation"}


def mode() -> str:
    """Return whether to set up one training, one per learning rate, or an evaluation."""
    return state.choose("What to start", MODES, "start", hidden=True, buttons=True) or ONE


def grid(workspace: Workspace, config: TrainingConfig) -> tuple[tuple[float, ...], TrainingConfig]:
    """The learning rates, and the training with the dev benchmark that they are compared on."""
    retriever, lora = config.retriever, config.lora_rank is not None
    text = st.text_input(
        "Learning rates",
        value=", ".join(map(rate, studies.grid_for(workspace, retriever, lora))),
        key=f"sweep_rates_{retriever}" + ("_lora" if lora else ""),
        help="Peak learning rates, separated by commas; one training each. The default is the paper's grid, or a "
        "grid around the retriever's own rate if the paper's does not include it.",
        persist_state="session",
    )
    rates: tuple[float, ...] = ()
    with frame.guarded():
        rates = read_rates(text)
    options = training_form.dev_options(workspace)
    chosen = state.choose(
        "Dev benchmark",
        {name: " · ".join(option) for name, option in options.items()},
        "dev",
        what="benchmark",
        help="Used to compare the learning rates. Do not report results on this benchmark.",
    )
    if not chosen:
        raise InputError(
            "A learning-rate sweep needs a dev benchmark, and the workspace has none.",
            hint="Add one: benchmarks add FOLDER.",
        )
    name, split = options[chosen]
    return rates, config.replace(benchmark=name, split=split)


def summary(workspace: Workspace, config: TrainingConfig, rates: tuple[float, ...]) -> None:
    """What the sweep comes to, and the button that starts it; nothing without rates, about which a box says enough."""
    if not rates:
        return
    plan = training.plan(workspace, config)
    study = studies.sweep(workspace, config, rates)
    planned = studies.plan(workspace, study)
    with st.container(border=True):
        st.markdown("#### What will happen")
        training_form.plan_figures(plan, trainings=len(rates))
        every = eval_steps_of(plan.settings, planned.steps[config.retriever])
        st.caption(f":material/info: Each training is evaluated every {count(every, 'step')} and at the end.")
        frame.remarks([note for note in planned.notes if "no dev split" in note])
        training_form.licences(plan)
        leaks = leakage.of_training(workspace, config, [])
        consent = training_form.consent(workspace, training.trained_on(config), leaks, "sweep")
        on = training_form.choose_place(workspace, "sweep")
        if forms.button(
            "Start the sweep",
            type="primary",
            icon=":material/rocket_launch:",
            key="sweep_start",
            width="stretch",
            disabled=not consent.given,
        ):
            with frame.guarded():
                with st.spinner("Starting"), clusters.chosen(workspace, on):
                    begun = studies.run(workspace, study, **consent.allowed)
                frame.link("evidence", "Follow the sweep", study=begun.job_id, tab="studies")
        st.caption("Runs in the background, as one study.")
    forms.command(
        commands.line(
            "sweep", config.query_set, config=config, without=("query_set", "learning_rate"),
            rates=",".join(rate(value) for value in rates), **consent.options, wait=True, on=on,
        )
    )  # fmt: skip
