"""Several methods' queries for one document, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from cdp.base.config import SynthesisConfig
from cdp.base.errors import NotFoundError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.services import commands, corpora, queries
from cdp.services.corpora import CorpusManifest
from cdp.services.queries import Preview, QuerySet
from cdp.synthesis.methods import METHODS
from cdp.ui.queries import costs, generators, methods, preview_parts
from cdp.ui.shell import access, command, frame, state
from cdp.ui.shell.text import count, cut, md

DEFAULT = ("diverse", "paraphrase")
MOST_MATCHES = 50


@dataclass(frozen=True)
class PreviewRequest:
    """What a preview is of. ``settings`` are further fields of SynthesisConfig, as sorted pairs."""

    corpus: str
    document: str
    methods: tuple[str, ...]
    per_doc: int
    generator: str
    settings: tuple[tuple[str, Any], ...]

    def config(self, method: str) -> SynthesisConfig:
        """The job that does for the whole corpus what the preview does for one document."""
        named = {"corpus": self.corpus, "method": method, "per_doc": self.per_doc, "generator": self.generator}
        return SynthesisConfig.from_dict({**dict(self.settings), **named})


def show(workspace: Workspace, manifest: CorpusManifest, sets: list[QuerySet]) -> None:
    """Pick a document, methods and a generator, and see what each method gives."""
    document = pick_document(workspace, manifest)
    if document is None:
        return
    all_methods = [method for method in METHODS.values() if method.generator != "ranking"]
    titles = methods.titles(all_methods)
    chosen_methods = st.multiselect(
        "Methods to compare",
        list(titles),
        default=list(DEFAULT),
        format_func=titles.__getitem__,
        key="preview_methods",
        persist_state="session",
    )
    with st.container(horizontal=True):
        per_doc = st.slider(
            "Queries per document (M)",
            1,
            20,
            5,
            key="preview_m",
            help=frame.definition("q_doc"),
            persist_state="session",
            width=320,
        )
        with st.container():
            chosen = generators.choose(sets, "preview")
    if not chosen_methods:
        st.caption("Select at least one method.")
        return
    extras = methods.extras(chosen_methods, all_methods, sets, "preview", {})
    settings = {name: value for name, value in {**chosen.settings, **extras}.items() if value}
    request = PreviewRequest(
        manifest.id, document.id, tuple(chosen_methods), per_doc, chosen.name, tuple(sorted(settings.items()))
    )
    slow = chosen.slow or any(method.generator for method in all_methods if method.name in chosen_methods)
    previews = _previews(workspace, request, chosen, slow)
    if previews is not None:
        preview_parts.comparison(previews, titles)
        with st.grid(2, min_column_width=340):
            for name, preview in previews.items():
                with st.container(border=True, height="stretch"):
                    preview_parts.draw(preview, titles.get(name, name))
        if chosen.slow:
            with frame.guarded():
                preview_parts.cost(
                    workspace, {titles[name]: (request.config(name), previews[name]) for name in previews}
                )
    with st.expander("Document text", icon=":material/article:", expanded=previews is None):
        st.markdown(f"**{md(document.title or document.id)}**")
        st.text(document.text)
    pairs = [word for name, value in request.settings for word in ("--set", f"{name}={value}")]
    command.show(
        commands.line(
            "queries", "preview", "--corpus", manifest.id, "--doc", document.id, "--methods", ",".join(chosen_methods),
            "--per-doc", per_doc, "--generator", chosen.name, *pairs,
        )
    )  # fmt: skip
    frame.next_step(
        "quality_diversity",
        "Measure whole query sets",
        "one document proves little; measure the difference over the whole corpus.",
        "preview_next",
    )


def pick_document(workspace: Workspace, manifest: CorpusManifest) -> Document | None:
    """Search and select: the matches are fetched, never the whole corpus."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        wanted = st.text_input(
            "Find a document", type="search", key=f"find_{manifest.id}", placeholder="word or ID", width=240
        )
        matches = corpora.page(workspace, manifest.id, 0, MOST_MATCHES, search=wanted)
        document_id = st.query_params.get("document") or state.kept("document")
        if document_id and not wanted and document_id not in {d.id for d in matches}:
            try:
                matches = [corpora.document(workspace, manifest.id, document_id), *matches]
            except NotFoundError:
                pass
        if not matches:
            st.caption("No matching documents.")
            return None
        with st.container():
            picked = state.choose(
                "Document",
                {d.id: f"{d.title or cut(d.text, 60)} ({d.id})" for d in matches},
                "document",
                what="document",
            )
    return next(d for d in matches if d.id == picked)


def _previews(
    workspace: Workspace, request: PreviewRequest, chosen: generators.Chosen, slow: bool
) -> Mapping[str, Preview] | None:
    """What costs nothing follows every choice; an endpoint or a model is asked when the button is pressed."""
    if not slow:
        with frame.guarded():
            return _ask(workspace, request, chosen)
        return None
    last = st.session_state.get("preview_answer")
    if access.button("Generate queries", type="primary", icon=":material/send:", key="preview_ask"):
        with frame.guarded(), st.spinner("Waiting for the model"):
            last = (request, _ask(workspace, request, chosen))
            st.session_state["preview_answer"] = last
    if last is None or last[0] != request:
        where = md(chosen.settings.get("base_url") or "OpenAI") if chosen.costs else "a model on this server"
        st.caption(f"The button sends requests for {count(len(request.methods), 'method')} to {where}.")
        return None
    previews: Mapping[str, Preview] = last[1]
    return previews


def _ask(workspace: Workspace, request: PreviewRequest, chosen: generators.Chosen) -> Mapping[str, Preview]:
    previews = queries.preview(
        workspace,
        request.corpus,
        request.document,
        methods=request.methods,
        per_doc=request.per_doc,
        generator=request.generator,
        api_key=chosen.api_key,
        **dict(request.settings),
    )
    costs.remember(request.config(request.methods[0]), previews)
    return previews
