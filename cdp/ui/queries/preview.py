"""Several methods' queries for one document, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from cdp.base.config import SynthesisConfig
from cdp.base.errors import NotFoundError
from cdp.base.records import Document
from cdp.base.text import duration
from cdp.base.workspace import Workspace
from cdp.services import commands, corpora, queries
from cdp.services.corpora import CorpusManifest
from cdp.services.queries import Preview, QuerySet
from cdp.services.synthesis import dollars
from cdp.synthesis.methods import METHODS
from cdp.ui.queries import writing
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import count, cut, md

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


def show(workspace: Workspace, manifest: CorpusManifest, sets: list[QuerySet], chosen: writing.Chosen) -> None:
    """Pick a document and methods, and see what each method gives."""
    st.subheader("Preview for one document", anchor=False)
    document = pick_document(workspace, manifest)
    if document is None:
        return
    all_methods = [method for method in METHODS.values() if method.generator != "ranking"]
    titles = writing.method_titles(all_methods)
    chosen_methods = st.multiselect(
        "Methods to compare",
        list(titles),
        default=list(DEFAULT),
        format_func=titles.__getitem__,
        key="preview_methods",
        persist_state="session",
    )
    per_doc = st.slider(
        "Queries per document (M)", 1, 20, 5, key="preview_m", help=frame.definition("q_doc"),
        persist_state="session", width=320,
    )  # fmt: skip
    if not chosen_methods:
        st.caption("Select at least one method.")
        return
    extras = writing.method_extras(chosen_methods, all_methods, sets, "preview", {})
    settings = {name: value for name, value in {**chosen.settings, **extras}.items() if value}
    request = PreviewRequest(
        manifest.id, document.id, tuple(chosen_methods), per_doc, chosen.name, tuple(sorted(settings.items()))
    )
    slow = chosen.slow or any(method.generator for method in all_methods if method.name in chosen_methods)
    previews = _previews(workspace, request, chosen, slow)
    if previews is not None:
        comparison(previews, titles)
        with st.grid(2, min_column_width=340):
            for name, preview in previews.items():
                with st.container(border=True, height="stretch"):
                    draw(preview, titles.get(name, name))
        if chosen.slow:
            with frame.guarded():
                cost(workspace, {titles[name]: (request.config(name), previews[name]) for name in previews})
    with st.expander("Document text", icon=":material/article:", expanded=previews is None):
        st.markdown(f"**{md(document.title or document.id)}**")
        st.text(document.text)
    pairs = [word for name, value in request.settings for word in ("--set", f"{name}={value}")]
    forms.command(
        commands.line(
            "queries", "preview", "--corpus", manifest.id, "--doc", document.id, "--methods", ",".join(chosen_methods),
            "--per-doc", per_doc, "--generator", chosen.name, *pairs,
        )
    )  # fmt: skip


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
    workspace: Workspace, request: PreviewRequest, chosen: writing.Chosen, slow: bool
) -> Mapping[str, Preview] | None:
    """What costs nothing follows every choice; an endpoint or a model is asked when the button is pressed."""
    if not slow:
        with frame.guarded():
            return _ask(workspace, request, chosen)
        return None
    last = st.session_state.get("preview_answer")
    if forms.button("Generate queries", type="primary", icon=":material/send:", key="preview_ask"):
        with frame.guarded(), st.spinner("Waiting for the model"):
            last = (request, _ask(workspace, request, chosen))
            st.session_state["preview_answer"] = last
    if last is None or last[0] != request:
        where = md(chosen.settings.get("base_url") or "OpenAI") if chosen.costs else "a model on this server"
        st.caption(f"The button sends requests for {count(len(request.methods), 'method')} to {where}.")
        return None
    previews: Mapping[str, Preview] = last[1]
    return previews


def _ask(workspace: Workspace, request: PreviewRequest, chosen: writing.Chosen) -> Mapping[str, Preview]:
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
    writing.remember_measured(request.config(request.methods[0]), previews)
    return previews


# Self-BLEU that differs by less shows as the same number.
SAME = 0.0005


def comparison(previews: Mapping[str, Preview], titles: Mapping[str, str]) -> None:
    """The methods in order of Self-BLEU, in one sentence."""
    self_bleu = {name: p.self_bleu for name, p in previews.items() if p.self_bleu is not None}
    if len(self_bleu) < 2:
        if not self_bleu:
            st.caption("Self-BLEU needs at least two queries.")
        return
    ordered = sorted(self_bleu, key=lambda name: self_bleu[name])
    first, rest = ordered[0], ordered[1:]
    values = ", ".join(f"{self_bleu[name]:.3f} for {md(titles.get(name, name))}" for name in rest)
    if self_bleu[rest[-1]] - self_bleu[first] < SAME:
        st.markdown(
            f"#### For this document, the methods are equally diverse\n"
            f"Self-BLEU {self_bleu[first]:.3f} for each of them."
        )
        return
    degree = "less" if len(rest) == 1 else "least"
    st.markdown(
        f"#### For this document, the {md(titles.get(first, first))} queries repeat each other {degree}\nSelf-BLEU "
        f"{self_bleu[first]:.3f} against {values}; lower is more diverse."
    )


def draw(preview: Preview, title: str) -> None:
    """One method's queries, each with its CW and format, and what they look like together."""
    st.markdown(f"#### {md(title)}", help=frame.DEFINITIONS.get(preview.method))
    cw = "–" if not preview.cw else f"{sum(preview.cw) / len(preview.cw):.1f}"
    bleu = "–" if preview.self_bleu is None else f"{preview.self_bleu:.3f}"
    tables.figures(
        ("Self-BLEU", bleu, frame.definition("self_bleu")),
        ("Mean CW", cw, frame.definition("cw")),
        ("Formats", len(preview.mix), "The number of different query formats, such as questions and keywords."),
    )
    if preview.queries:
        st.markdown("\n".join(_line(preview, index) for index in range(len(preview.queries))))
        st.caption(" · ".join(f"{md(name)} {n}" for name, n in preview.mix.items()))
    elif not preview.error:
        st.caption("The model's answer contained no usable query.")
    if preview.error:
        st.error(f"This method failed on this document: {md(preview.error)}", icon=":material/error:")
        if preview.traceback:
            with st.expander("Traceback", type="compact"):
                st.code(preview.traceback, language=None)
    frame.remarks(preview.problems, "warning")
    for note in dict.fromkeys(note for note in preview.notes if note):
        st.caption(f"Intermediate output: {md(note, 300)}")
    if preview.prompt:
        with st.expander("Prompt", type="compact"):
            st.code(preview.prompt, language=None, wrap_lines=True)


def _line(preview: Preview, index: int) -> str:
    """One query with its CW, and its format."""
    marks = [f"CW\u00a0{preview.cw[index]}", md(preview.formats[index])]
    from_query = f" :small[:gray[from: {md(preview.sources[index], 120)}]]" if preview.sources else ""
    return f"{index + 1}. {md(preview.queries[index])} :small[:gray[{' · '.join(marks)}]]{from_query}"


def cost(workspace: Workspace, previews: Mapping[str, tuple[SynthesisConfig, Preview]]) -> None:
    """What this preview cost, and what the same costs for the whole corpus."""
    estimates = {name: writing.estimated(workspace, config) for name, (config, _) in previews.items()}
    st.markdown("#### Cost of this preview and of the whole corpus")
    tables.show(
        {
            "Method": list(previews),
            "Requests": [preview.usage.get("requests", 0) for _, preview in previews.values()],
            "Input tokens": [preview.usage.get("input_tokens", 0) for _, preview in previews.values()],
            "Output tokens": [preview.usage.get("output_tokens", 0) for _, preview in previews.values()],
            "This preview": [dollars(preview.cost) for _, preview in previews.values()],
            "Whole corpus": [dollars(estimate.cost) for estimate in estimates.values()],
            "Cost as a batch": [dollars(estimate.batch_cost) for estimate in estimates.values()],
            "Time": [
                "–" if estimate.seconds is None else duration(estimate.seconds) for estimate in estimates.values()
            ],
        },
        alt="Cost of the preview and of the whole corpus, by method",
    )
