"""What writing queries costs: before the start, as a table to edit, and afterwards beside the estimate."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import streamlit as st

from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.services import job_words, synthesis
from cdp.services.queries import Preview, QuerySet
from cdp.services.synthesis import Estimate, dollars
from cdp.ui.shell import access, frame, tables
from cdp.ui.shell.text import count, md, number

MEASURED = "preview_measured"
"""In the session: what the last preview of a method and model measured, (tokens per query, seconds per request)."""


def remember(config: SynthesisConfig, previews: Mapping[str, Preview]) -> None:
    """Keep what a preview measured, for later estimates."""
    measurements = st.session_state.setdefault(MEASURED, {})
    for name, preview in previews.items():
        if preview.tokens_per_query is not None:
            measurements[name, config.model_name] = (preview.tokens_per_query, preview.latency_s)


def measured(config: SynthesisConfig) -> tuple[float | None, float | None]:
    """Output tokens per query and seconds per request, as a preview measured them; None without one."""
    measurement: tuple[float | None, float | None] = st.session_state.get(MEASURED, {}).get(
        (config.method, config.model_name), (None, None)
    )
    return measurement


def estimated(workspace: Workspace, config: SynthesisConfig) -> Estimate:
    """The estimate of a job, kept until its settings, the prices or what was measured change."""
    tokens, latency = measured(config)
    key = (str(workspace.root), config, tokens, latency, synthesis.read_prices(workspace))
    cached: dict[object, Estimate] = st.session_state.setdefault("estimates", {})
    if key not in cached:
        if len(cached) >= 64:
            cached.clear()
        cached[key] = synthesis.estimate(workspace, config, tokens_per_query=tokens, latency_s=latency)
    return cached[key]


def before(workspace: Workspace, config: SynthesisConfig) -> None:
    """Tokens, price and time of a job that is about to start."""
    estimate = estimated(workspace, config)
    if not estimate.requests:
        st.caption(f"{count(estimate.n_documents, 'document')}. No LLM is used, so this is free.")
        return
    margin = f"± {estimate.input_margin:,} (95%), estimated from {count(estimate.sampled, 'document')}"
    basis = "assumed for a typical query; run a preview to measure them"
    if measured(config)[0]:
        basis = "measured in the preview"
    batch = estimate.batch_cost is not None and estimate.batch_cost != estimate.cost
    tables.figures(
        ("Requests", number(estimate.requests)),
        ("Input tokens", number(estimate.input_tokens), margin),
        ("Output tokens", f"≈ {number(estimate.output_tokens)}", basis),
        ("Cost", dollars(estimate.cost)),
        ("Cost as a batch", dollars(estimate.batch_cost)) if batch else None,
        None if estimate.seconds is None else ("Time", job_words.duration(estimate.seconds)),
    )
    if estimate.cost is None:
        st.caption(f"{md(config.model_name)} is not in the price table: add it below to see what this costs.")
    elif estimate.price is not None:
        st.caption(f"Prices as of {md(estimate.price.as_of)}. Output tokens are {basis}.")


def after(workspace: Workspace, query_set: QuerySet) -> None:
    """The cost of a set beside its estimate."""
    _show_bill(synthesis.bill(workspace, query_set.id))


def of_job(workspace: Workspace, job_id: str) -> None:
    """What a job that writes queries has cost so far, and what of it may have been paid for nothing."""
    _show_bill(synthesis.bill_of_job(workspace, job_id))


def _show_bill(bill: synthesis.Bill | None) -> None:
    if bill is not None:
        st.caption(md(bill.told))
        if bill.unanswered:
            st.caption(f":material/warning: {md(bill.unanswered)}")


def table(workspace: Workspace) -> None:
    """The price table, to be edited."""
    with st.expander("Price table", icon=":material/sell:", key="prices"):
        prices = synthesis.read_prices(workspace)
        st.caption("US dollars per million tokens. Update prices that have changed, and add your own models.")
        edited = st.data_editor(
            [
                {"model": r.model, "input": r.input, "output": r.output, "batch_discount": r.batch_discount}
                for r in prices.rows
            ],
            num_rows="dynamic",
            hide_index=True,
            key="prices_rows",
            column_config={
                "model": st.column_config.TextColumn("Model", required=True),
                "input": st.column_config.NumberColumn("Input", min_value=0.0, format="%g", required=True),
                "output": st.column_config.NumberColumn("Output", min_value=0.0, format="%g", required=True),
                "batch_discount": st.column_config.NumberColumn(
                    "Batch discount", min_value=0.0, max_value=1.0, format="percent"
                ),
            },
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            day = st.date_input("As of", value=_date(prices.as_of), key="prices_as_of", width=160)
            if access.button("Save prices", key="prices_save"):
                try:
                    synthesis.save_prices(workspace, [dict(row) for row in edited], day.isoformat())
                    st.rerun()
                except CdpError as error:
                    frame.show_error(error)


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return date.today()
