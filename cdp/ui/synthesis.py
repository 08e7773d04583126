"""Writing queries for a whole corpus, as a background job."""

from __future__ import annotations

import streamlit as st

from cdp.config import SynthesisConfig
from cdp.services import commands, queries
from cdp.services.corpora import CorpusManifest
from cdp.services.queries import QuerySet
from cdp.ui import access, clone, command, forms, frame, generators
from cdp.ui.text import count, md
from cdp.workspace import Workspace


def generate(workspace: Workspace, manifest: CorpusManifest, sets: list[QuerySet]) -> None:
    """The form, what it comes to, and the button that starts the job."""
    st.subheader("Write queries for the whole corpus", anchor=False)
    first, suffix = clone.first(workspace, "synthesis")
    key = f"generate{suffix}"
    methods = {m.name: m for m in queries.methods()}
    method = st.segmented_control(
        "Method",
        list(methods),
        format_func=lambda name: methods[name].title,
        default=first["method"] if first.get("method") in methods else "diverse",
        required=True,
        key=f"{key}_method",
        help="  \n".join(f"**{md(m.title)}**: {md(m.help)}" for m in methods.values()),
        persist_state="session",
    )
    chosen = generators.choose(sets, key, first)
    settings = forms.fields(
        SynthesisConfig,
        key=key,
        leave_out=("corpus", "method", "generator", "model", "base_url"),
        values=first,
        columns=3,
    )
    with frame.guarded():
        config = SynthesisConfig.from_dict(
            {**chosen.settings, **settings, "corpus": manifest.id, "method": method, "generator": chosen.name}
        )
        n = min(manifest.n_documents, config.limit or manifest.n_documents)
        total = f"{count(n, 'document')} × {config.per_doc} = {count(n * config.per_doc, 'query', 'queries')}"
        requests = f", {count(n, 'request')} to the endpoint" if chosen.costs else ""
        st.caption(f"{total}{requests}. It runs in the background; what is written so far survives a stop.")
        if access.button("Start writing", type="primary", icon=":material/play_arrow:", key="generate_start"):
            job = queries.generate(workspace, config, api_key=chosen.api_key)
            frame.navigation.go("jobs", job=job)
        command.show(commands.generate(config))
