"""Diverse and paraphrase queries for one document, side by side."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from cdp.errors import NotFoundError
from cdp.records import Document
from cdp.services import commands, corpora, queries
from cdp.services.corpora import CorpusManifest
from cdp.services.queries import Preview, QuerySet
from cdp.ui import access, command, frame, generators, state
from cdp.ui.text import cut, md
from cdp.workspace import Workspace

METHODS = ("diverse", "paraphrase")
MOST_MATCHES = 50


def show(workspace: Workspace, manifest: CorpusManifest, sets: list[QuerySet]) -> None:
    """Pick a document and a generator, and see what each method gives."""
    document = pick_document(workspace, manifest)
    if document is None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
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
    found = _previews(workspace, manifest, document, per_doc, chosen)
    if found is not None:
        _answer(found)
        left, right = st.columns(2, gap="medium")
        for column, method in zip((left, right), METHODS, strict=True):
            with column, st.container(border=True, height="stretch"):
                draw(found[method])
    with st.expander("The document", icon=":material/article:", expanded=found is None):
        st.markdown(f"**{md(document.title or document.id)}**")
        st.text(document.text)
    command.show(
        commands.line(
            "queries", "preview", corpus=manifest.id, doc=document.id, methods=",".join(METHODS), per_doc=per_doc,
            generator=chosen.name,
            base_url=chosen.settings.get("base_url") or None, model=chosen.settings.get("model") or None,
        )
    )  # fmt: skip
    frame.next_step(
        "quality_diversity",
        "Measure whole query sets",
        "one document is an anecdote; measure the difference over the corpus.",
        "preview_next",
    )


def pick_document(workspace: Workspace, manifest: CorpusManifest) -> Document | None:
    """Search and select: the matches are fetched, never the whole corpus."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        wanted = st.text_input(
            "Find a document", type="search", key=f"find_{manifest.id}", placeholder="word or id", width=240
        )
        found = corpora.page(workspace, manifest.id, 0, MOST_MATCHES, search=wanted)
        asked = st.query_params.get("document") or state.kept("document")
        if asked and not wanted and asked not in {d.id for d in found}:
            try:
                found = [corpora.document(workspace, manifest.id, asked), *found]
            except NotFoundError:
                pass
        if not found:
            st.caption("No document holds that.")
            return None
        with st.container():
            picked = state.choose(
                "Document",
                {d.id: f"{d.title or cut(d.text, 60)} ({d.id})" for d in found},
                "document",
                what="document",
            )
    return next(d for d in found if d.id == picked)


def _previews(
    workspace: Workspace, manifest: CorpusManifest, document: Document, per_doc: int, chosen: generators.Chosen
) -> Mapping[str, Preview] | None:
    """Without cost the previews follow every choice; an endpoint is asked only when the button is pressed."""
    asked = (manifest.id, document.id, per_doc, chosen.name, tuple(sorted(chosen.settings.items())))
    if chosen.costs:
        last = st.session_state.get("preview_answer")
        if access.button("Ask the model", type="primary", icon=":material/send:", key="preview_ask"):
            with frame.guarded(), st.spinner("Waiting for the endpoint"):
                last = (asked, _ask(workspace, manifest, document, per_doc, chosen))
                st.session_state["preview_answer"] = last
        if last is None or last[0] != asked:
            st.caption(f"Two requests to {md(chosen.settings['base_url'] or 'OpenAI')} are sent when you ask.")
            return None
        found: Mapping[str, Preview] = last[1]
        return found
    with frame.guarded():
        return _ask(workspace, manifest, document, per_doc, chosen)
    return None


def _ask(
    workspace: Workspace, manifest: CorpusManifest, document: Document, per_doc: int, chosen: generators.Chosen
) -> Mapping[str, Preview]:
    return queries.preview(
        workspace,
        manifest.id,
        document.id,
        methods=METHODS,
        per_doc=per_doc,
        generator=chosen.name,
        api_key=chosen.api_key,
        **chosen.settings,
    )


def draw(preview: Preview) -> None:
    """One method's queries, each with its CW, and their Self-BLEU."""
    title = preview.method.capitalize()
    st.markdown(f"#### {md(title)}", help=frame.DEFINITIONS.get(preview.method))
    with st.container(horizontal=True):
        st.metric(
            "Self-BLEU",
            "–" if preview.self_bleu is None else f"{preview.self_bleu:.3f}",
            help=frame.definition("self_bleu"),
            width="content",
        )
        mean = sum(preview.cw) / len(preview.cw) if preview.cw else None
        st.metric("Mean CW", "–" if mean is None else f"{mean:.1f}", help=frame.definition("cw"), width="content")
    if preview.queries:
        lines = zip(preview.queries, preview.cw, strict=True)
        st.markdown(
            "\n".join(f"{i}. {md(query)} :small[:gray[CW\u00a0{cw}]]" for i, (query, cw) in enumerate(lines, 1))
        )
    else:
        st.caption("No query could be read from the answer.")
    for problem in preview.problems:
        st.caption(f":material/warning: {md(problem)}")
    if preview.usage:
        used = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in preview.usage.items() if n)
        if used:
            st.caption(md(used))
    if preview.prompt:
        with st.expander("The prompt", type="compact"):
            st.code(preview.prompt, language=None, wrap_lines=True)


def _answer(found: Mapping[str, Preview]) -> None:
    """The comparison in one sentence."""
    diverse, paraphrase = (found[method] for method in METHODS)
    if diverse.self_bleu is None or paraphrase.self_bleu is None:
        st.caption("Self-BLEU needs at least two queries.")
        return
    gap = paraphrase.self_bleu - diverse.self_bleu
    first, second = ("diverse", "paraphrase") if gap > 0 else ("paraphrase", "diverse")
    low, high = sorted((diverse.self_bleu, paraphrase.self_bleu))
    st.markdown(
        f"#### For this document the {first} queries repeat each other less\n"
        f"Self-BLEU {low:.3f} against {high:.3f} for the {second} ones; lower is more diverse."
    )
