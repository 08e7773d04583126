"""Writing queries for a whole corpus, as a background job."""

from __future__ import annotations

import streamlit as st

from cdp.base.config import SynthesisConfig
from cdp.base.workspace import Workspace
from cdp.services import commands, queries
from cdp.services.corpora import CorpusManifest
from cdp.services.queries import QuerySet
from cdp.synthesis.methods import METHODS
from cdp.ui.jobs import clone
from cdp.ui.queries import costs, exports, generators, methods
from cdp.ui.queries.generators import Chosen
from cdp.ui.shell import access, command, forms, frame
from cdp.ui.shell.text import md


def generate(workspace: Workspace, manifest: CorpusManifest, sets: list[QuerySet]) -> None:
    """The form, what it comes to, and the button that starts the job."""
    st.subheader("Write queries for the whole corpus", anchor=False)
    first, suffix = clone.first(workspace, "synthesis")
    key = f"generate{suffix}"
    if not suffix:
        generators.carry("preview", key)
    all_methods = list(METHODS.values())
    titles = methods.titles(all_methods)
    method = forms.segments(
        "Method",
        titles,
        default=first.get("method", "diverse"),
        key=f"{key}_method",
        help="  \n".join(f"**{md(m.title)}**: {md(m.help)}" for m in all_methods),
    )
    extras = methods.extras([method], all_methods, sets, key, first)
    without_llm = any(m.name == method and m.generator for m in all_methods)
    chosen = Chosen("template", {}) if without_llm else generators.choose(sets, key, first)
    settings = forms.fields(
        SynthesisConfig,
        key=key,
        leave_out=("corpus", "method", "generator", "model", "base_url", *methods.SETTINGS),
        values=first,
        columns=3,
    )
    with frame.guarded():
        config = SynthesisConfig.from_dict(
            {**chosen.settings, **settings, **extras, "corpus": manifest.id, "method": method, "generator": chosen.name}
        )
        costs.before(workspace, config)
        st.caption("Runs in the background. If you stop it, the finished queries are kept.")
        if access.button("Start writing queries", type="primary", icon=":material/play_arrow:", key="generate_start"):
            tokens, latency = costs.measured(config)
            job = queries.generate(
                workspace, config, api_key=chosen.api_key, tokens_per_query=tokens, latency_s=latency
            )
            frame.navigation.go("jobs", job=job)
        command.show(commands.line("queries", "generate", config=config, wait=True))
        if chosen.costs:
            exports.batch(workspace, config)
    costs.table(workspace)
    methods.overview()
