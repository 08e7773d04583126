"""What a whole run would take at any size: the planner's form, its totals, its stages, the arithmetic folded away."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.planning.config import PlanConfig
from cdp.planning.quantities import long_time
from cdp.planning.scale import ScalePlan
from cdp.planning.words import interval, money
from cdp.services import corpora, planning, training
from cdp.ui.shell import access, command, forms, frame, project, tables
from cdp.ui.shell.text import md, size

FIRST = ("documents", "per_doc", "generator", "retriever", "machines", "cpus", "gpus", "dollars_per_hour")
"""Asked at once; the others are folded away."""

LABELS = {"per_doc": "Q/Doc", "cpus": "Processors each", "gpus": "GPUs each", "dollars_per_hour": "Price per hour"}


def page(workspace: Workspace) -> None:
    """The form on the left, what it takes on the right."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        config = _asked(workspace)
    if config is not None:
        with right, frame.guarded():
            _summary(workspace, config)


def _asked(workspace: Workspace) -> PlanConfig | None:
    """What is planned: the newest corpus of the project on screen, until something else is typed."""
    chosen = {}
    with frame.guarded():
        own = project.keep(workspace, "corpus", corpora.list_corpora(workspace))
        offered = {
            "generator": planning.list_generators(workspace),
            "retriever": [choice.id for choice in training.list_retrievers(workspace)],
        }
        as_many = "those of the corpus" if own else f"{planning.EIGHT_THOUSAND:,}"
        for name in FIRST:
            chosen[name] = forms.widget(
                PlanConfig, name, key="scale", label=LABELS.get(name, ""),
                placeholder=as_many if name == "documents" else "", offered=offered.get(name, ()),
            )  # fmt: skip
        with st.expander("Documents, method, rates", icon=":material/tune:", key="scale_settings"):
            chosen |= forms.fields(
                PlanConfig, key="scale", leave_out=FIRST, values={"corpus": own[0].id} if own else {}
            )
        return PlanConfig.from_dict({name: value for name, value in chosen.items() if value not in (None, "")})
    return None


def _summary(workspace: Workspace, config: PlanConfig) -> None:
    if access.button(
        "Measure this machine",
        icon=":material/timer:",
        key="scale_measure",
        help="Small real work of every stage in a temporary folder: half a minute of a processor. The rates are kept.",
    ):
        with st.spinner("Reading, writing, encoding, training, searching a little"):
            planning.measure(workspace, config.retriever)
    plan = planning.plan(workspace, config)
    known = len(plan.stages) - len(plan.unknown)
    tables.figures(
        ("Time", long_time(plan.span.seconds) if known else "unknown", _time_help(plan)),
        ("Money", money(plan.dollars, plan.priced)),
        ("Memory", size(plan.memory), "At least, of one machine, in the stage that takes most."),
        ("Storage", size(plan.storage)),
        ("Network", size(plan.network)),
    )
    tables.show(
        {
            "Stage": [stage.title for stage in plan.stages],
            "Time": [interval(stage.span) for stage in plan.stages],
            "Rate": [stage.basis for stage in plan.stages],
            "Money": [money(stage.dollars, stage.priced) for stage in plan.stages],
            "Memory": ["–" if s.sizes.memory is None else size(s.sizes.memory) for s in plan.stages],
            "Storage": [size(stage.sizes.storage) for stage in plan.stages],
            **({"Network": [size(stage.sizes.network) for stage in plan.stages]} if plan.network else {}),
        },
        alt="Time, money, memory, storage and network of every stage",
    )
    frame.remarks(list(plan.notes))
    with st.expander("Arithmetic", icon=":material/calculate:", key="scale_arithmetic"):
        for stage in plan.stages:
            lines = [*map(md, stage.arithmetic), *(f"*{md(note)}*" for note in stage.notes)]
            st.markdown("\n".join([f"**{md(stage.title)}**", *(f"- {line}" for line in lines)]))
    command.show(planning.command(config))


def _time_help(plan: ScalePlan) -> str:
    missing = f" Not counted, for nobody has measured it: {', '.join(plan.unknown)}." if plan.unknown else ""
    return f"One stage after the other: {interval(plan.span)}, by the spread of the measurements.{missing}"
