"""Writing queries for a whole corpus: generator, method, price, batch files, export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import streamlit as st

from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError
from cdp.base.text import duration
from cdp.base.workspace import Workspace
from cdp.services import access, commands, queries, synthesis
from cdp.services.corpora import CorpusManifest
from cdp.services.queries import Preview, QuerySet
from cdp.services.synthesis import Estimate, Writer, dollars
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.methods import METHODS, Method
from cdp.ui import jobs as job_views
from cdp.ui.shell import forms, frame, tables
from cdp.ui.shell.tables import count, md, number


@dataclass(frozen=True)
class Chosen:
    """A generator with its settings (fields of SynthesisConfig).

    ``costs`` is whether using it calls an endpoint, ``slow`` whether it is only asked when a button is pressed.
    """

    name: str
    settings: dict[str, Any]
    api_key: str = ""

    @property
    def costs(self) -> bool:
        return GENERATORS[self.name].endpoint

    @property
    def slow(self) -> bool:
        return GENERATORS[self.name].is_llm


def choose_generator(sets: list[QuerySet], key: str, first: Mapping[str, Any] | None = None) -> Chosen:
    """Ask for a generator. Recorded answers are offered where the corpus has some, and then come first.

    ``first`` are settings to begin with (fields of SynthesisConfig).
    """
    first = first or {}
    offered = {name: GENERATORS[name] for name in GENERATORS.offered}
    has_recorded = any(q.generator == "recorded" for q in sets)
    names = [n for n in offered if n != "recorded" or has_recorded]
    if has_recorded:
        names.sort(key=lambda n: n != "recorded")
    name = forms.segments(
        "Generator",
        {n: offered[n].title for n in names},
        default=first.get("generator"),
        key=f"{key}_generator",
        help="  \n".join(f"**{offered[n].title}**: {md(offered[n].help)}" for n in names),
    )
    if offered[name].local:
        model = _model(name, key, first)
        return Chosen(name, {"model": model})
    if not offered[name].endpoint:
        return Chosen(name, {})
    with st.grid(3, min_column_width=220):
        begin = first.get("base_url") or access.configured_endpoint()
        base_url = forms.widget(SynthesisConfig, "base_url", key=key, label="Base URL", value=begin)
        model = _model(name, key, first)
        api_key = st.text_input(
            "API key",
            type="password",
            key=f"{key}_api_key",
            help="Used for this session's requests and passed to the jobs you start; never written to disk. If "
            "empty, the server's own key is used when it belongs to this URL, otherwise none.",
            placeholder="server's own key" if _own_key(str(base_url)) else "none",
        )
    return Chosen(name, {"base_url": base_url, "model": model}, api_key)


FORMS = ("trial", "generate")


def chosen_llm() -> Writer | None:
    """The LLM that was chosen in a form of this session; None where each was left at what it began with."""
    for key in FORMS:
        settings = {name: st.session_state.get(f"{key}_{name}") for name in ("generator", "model")}
        if settings["generator"] in GENERATORS and GENERATORS[settings["generator"]].is_llm:
            return Writer.of(settings)
    return None


CARRIED = ("generator", "base_url", "model")


def carry(source: str, target: str) -> None:
    """What was chosen in one form stands in the other, each time that it is chosen again there."""
    now = {name: st.session_state.get(f"{source}_{name}") for name in CARRIED}
    if not now["generator"] or now == st.session_state.get(f"carried_{target}"):
        return
    st.session_state[f"carried_{target}"] = now
    for name, value in now.items():
        if value is not None:
            st.session_state[f"{target}_{name}"] = value


def _own_key(base_url: str) -> bool:
    try:
        return bool(access.server_key(base_url))
    except CdpError:  # no address yet; the request says so
        return False


def _model(generator: str, key: str, first: Mapping[str, Any]) -> str:
    """The model's name; the label says which one an empty field means."""
    label = f"Model (default: {GENERATORS[generator].model})"
    return str(forms.widget(SynthesisConfig, "model", key=key, label=label, value=first.get("model")))


OWN = "own"
OWN_TITLE = "Your own prompt"
EXAMPLE_PROMPT = """Write {M} search queries that this document answers, as a numbered list.

<document>
{document}
</document>

1."""
# The fields that are asked for here and in no general form.
METHOD_SETTINGS = ("prompt", "source", "ranker", "teachers")


def method_titles(methods: Sequence[Method]) -> dict[str, str]:
    """Names and titles of the methods, with the user's own prompt last."""
    return {**{m.name: m.title for m in methods}, OWN: OWN_TITLE}


def method_extras(
    names: Sequence[str], methods: Sequence[Method], sets: list[QuerySet], key: str, first: Mapping[str, Any]
) -> dict[str, Any]:
    """Ask for what the chosen methods need; fields of SynthesisConfig. Says what must be said about a method."""
    chosen = [method for method in methods if method.name in names]
    values: dict[str, Any] = {}
    for note in dict.fromkeys(method.note for method in chosen if method.note):
        st.info(md(note), icon=":material/info:")
    if OWN in names:
        values["prompt"] = st.text_area(
            "Your prompt",
            value=first.get("prompt") or EXAMPLE_PROMPT,
            height=200,
            key=f"{key}_prompt",
            help="Use {document} where the document goes and {M} for the number of queries. The prompt is stored "
            "with the query set, under its hash.",
            persist_state="session",
        )
    if any(method.from_queries for method in chosen):
        complete = {q.id: q.name for q in sets if q.complete and q.method != "reasoning"}
        values["source"] = (
            st.selectbox(
                "Query set to reason over",
                list(complete),
                format_func=complete.__getitem__,
                key=f"{key}_source",
                persist_state="session",
            )
            or ""
        )
    for method in chosen:
        field = {"cropping": "ranker", "ranking": "teachers"}.get(method.generator)
        if field:
            values[field] = forms.widget(SynthesisConfig, field, key=key, value=first.get(field))
    return {name: value for name, value in values.items() if value}


# In the session: what the last preview of a method and model measured, (tokens per query, seconds per request).
MEASURED = "preview_measured"


def remember_measured(config: SynthesisConfig, previews: Mapping[str, Preview]) -> None:
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


def cost_before(workspace: Workspace, config: SynthesisConfig) -> None:
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
        None if estimate.seconds is None else ("Time", duration(estimate.seconds)),
    )
    if estimate.cost is None:
        st.caption(f"{md(config.model_name)} is not in the price table: add it below to see what this costs.")
    elif estimate.price is not None:
        st.caption(f"Prices as of {md(estimate.price.as_of)}. Output tokens are {basis}.")


def cost_after(workspace: Workspace, query_set: QuerySet) -> None:
    """The cost of a set beside its estimate."""
    job_views.bill(synthesis.bill_of_job(workspace, query_set.job_id) if query_set.job_id else None)


def price_table(workspace: Workspace) -> None:
    """The price table, to be edited."""
    with st.expander("Price table", icon=":material/sell:", key="prices"):
        prices = synthesis.read_prices(workspace)
        st.caption(
            f"US dollars per million tokens, as of {md(prices.as_of)}. Update prices that have changed, and add models."
        )
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
        if forms.button("Save prices", key="prices_save"):
            with frame.guarded():
                synthesis.save_prices(workspace, [dict(row) for row in edited], date.today().isoformat())
                st.rerun()


MOST_DOWNLOADED = 200 * 2**20


def export(workspace: Workspace, query_set: QuerySet) -> None:
    """Write the set in a format of another program, on the server and to download."""
    with st.expander("Export", icon=":material/download:", key=f"export_{query_set.id}"):
        formats = synthesis.export_formats(query_set)
        form = forms.segments("Format", list(formats), key="export_format", persistent=False)
        st.caption(md(formats[form].help))
        target = st.text_input(
            "File or folder on this server",
            value=str(workspace.root / "exports" / f"{query_set.id}{formats[form].suffix}"),
            key=f"export_target_{query_set.id}_{form}",
        )
        pressed = forms.button("Export query set", icon=":material/save:", key="export_write")
        forms.command(commands.line("queries", "export", query_set.id, format=form, out=target))
        if pressed:
            with frame.guarded(), st.spinner("Writing"):
                done = synthesis.export(workspace, query_set.id, form, target)
                what = ("query", "queries") if formats[form].write else ("request",)
                st.success(f"{count(done.n, *what)} written to {md(target)}.")
                if done.note:
                    st.caption(f":material/warning: {md(done.note)}")
                st.session_state[f"exported_{query_set.id}_{form}"] = done.paths
        _download(st.session_state.get(f"exported_{query_set.id}_{form}", ()))


def _download(written: tuple[Path, ...]) -> None:
    """What this session has just written, where it is a single file; never what somebody names."""
    for path in written[:1]:
        if len(written) == 1 and path.is_file() and path.stat().st_size <= MOST_DOWNLOADED:
            st.download_button("Download", path.read_bytes, file_name=path.name, key="export_download")


def generate(
    workspace: Workspace,
    manifest: CorpusManifest,
    sets: list[QuerySet],
    generator: Chosen,
    key: str,
    first: Mapping[str, Any],
) -> None:
    """The form, what it comes to, and the button that starts the job. ``first`` are settings to begin with."""
    st.subheader("Write queries for all documents", anchor=False)
    all_methods = list(METHODS.values())
    titles = method_titles(all_methods)
    method = forms.segments(
        "Method",
        titles,
        default=first.get("method", "diverse"),
        key=f"{key}_method",
        help="  \n".join(f"**{md(m.title)}**: {md(m.help)}" for m in all_methods),
    )
    extras = method_extras([method], all_methods, sets, key, first)
    without_llm = any(m.name == method and m.generator for m in all_methods)
    chosen = Chosen("template", {}) if without_llm else generator
    settings = forms.fields(
        SynthesisConfig,
        key=key,
        leave_out=("corpus", "method", "generator", "model", "base_url", *METHOD_SETTINGS),
        values=first,
        columns=3,
    )
    with frame.guarded():
        config = SynthesisConfig.from_dict(
            {**chosen.settings, **settings, **extras, "corpus": manifest.id, "method": method, "generator": chosen.name}
        )
        cost_before(workspace, config)
        st.caption("Runs in the background. If you stop it, the finished queries are kept.")
        if forms.button("Start writing queries", type="primary", icon=":material/play_arrow:", key="generate_start"):
            tokens, latency = measured(config)
            job = queries.generate(
                workspace, config, api_key=chosen.api_key, tokens_per_query=tokens, latency_s=latency
            )
            frame.go("jobs", job=job)
        forms.command(commands.line("queries", "generate", config=config, wait=True))
    price_table(workspace)
