"""A sweep over learning rates: its grid and dev benchmark, its start, and the table of what it shows."""

from __future__ import annotations

import streamlit as st

from cdp.base.config import TrainingConfig
from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.services import clusters, commands, leakage, sweeps, training
from cdp.services.sweeps import Sweep, eval_steps_of, rate, read_rates, to_markdown
from cdp.studies.sweeps import SweepReport
from cdp.ui import jobs as job_views
from cdp.ui.launch import training as training_form
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import count, md, moment

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
        value=", ".join(map(rate, sweeps.grid_for(workspace, retriever, lora))),
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
    with st.container(border=True):
        st.markdown("#### What will happen")
        training_form.plan_figures(plan, trainings=len(rates))
        every = eval_steps_of(plan.settings, plan.steps)
        st.caption(f":material/info: Each training is evaluated every {count(every, 'step')} and at the end.")
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
                    begun = sweeps.start(workspace, config, rates, **consent.allowed)
                state.write("sweep", begun.id)
                st.rerun()
        st.caption("Runs in the background: one job per learning rate, one after the other.")
    forms.command(
        commands.line(
            "sweep", config.query_set, config=config, without=("query_set", "learning_rate"),
            rates=",".join(rate(value) for value in rates), **consent.options, wait=True, on=on,
        )
    )  # fmt: skip


def results(workspace: Workspace) -> None:
    """The sweeps that there are, one of them opened."""
    scope = state.scope(workspace)
    all_sweeps = [s for s in sweeps.list_sweeps(workspace) if any(scope.has_job(job) for job in s.jobs)]
    if not all_sweeps:
        return
    st.subheader("Sweeps", anchor=False)
    names = {s.id: f"{s.name} ({moment(s.created)})" for s in all_sweeps}
    chosen = state.choose("Sweep", names, "sweep", what="sweep", hidden=True)
    sweep = next(s for s in all_sweeps if s.id == chosen)
    job_views.live(_live, sweep.active, workspace, sweep, sweep.active)


def _live(workspace: Workspace, sweep: Sweep, was_active: bool) -> None:
    with frame.guarded():
        report = sweeps.report(workspace, sweep.id)
        if was_active and report.done:
            st.rerun()
        st.markdown("\n".join(f"- {md(text)}" for text in report.findings))
        row = _table(report)
        picked = report.runs[row] if row is not None else report.chosen
        if picked is not None:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{rate(picked.learning_rate)}**", width="content")
                frame.link("jobs", "Open its training", icon=":material/progress_activity:", job=picked.job_id)
                frame.link(
                    "launch", "Train with this rate", icon=":material/content_copy:", clone=picked.job_id, start=ONE,
                    query_set=report.query_set, retriever=report.retriever,
                )  # fmt: skip
        _export(report)


def _table(report: SweepReport) -> int | None:
    """The rates with their scores at the checkpoints; the row that was chosen by a click."""
    steps = report.checkpoints
    named = {f"Step {step:,}": [run.at(step) for run in report.runs] for step in steps}
    best = report.chosen
    return tables.pick_row(
        {
            "Learning rate": [rate(run.learning_rate) + (" ●" if run is best else "") for run in report.runs],
            **named,
            "Best": [run.best for run in report.runs],
            "At step": [run.best_step for run in report.runs],
            "Final loss": [run.loss for run in report.runs],
            "State": [run.state for run in report.runs],
        },
        alt="Dev NDCG@10 in percent of each learning rate at its checkpoints; choose a row to open its training",
        key=f"sweep_table_{report.id}",
        config={
            **tables.decimals(*named, "Best"),
            **tables.decimals("Final loss", digits=4),
            "At step": st.column_config.NumberColumn(format="localized"),
        },
    )


def _export(report: SweepReport) -> None:
    forms.download("Report as Markdown", to_markdown(report), f"{report.id}.md", key=f"sweep_md_{report.id}")
    forms.command(commands.line("study", "report", report.id))
