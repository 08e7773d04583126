"""What a corpus holds: figures, lengths, the documents themselves, and what was not taken."""

from __future__ import annotations

import streamlit as st

from cdp.base.errors import NotFoundError
from cdp.base.records import Document
from cdp.base.workspace import Workspace
from cdp.charts.decide import length_histogram
from cdp.services import corpora
from cdp.services.corpora import CorpusManifest
from cdp.ui.shell import access, charts, failed, frame, imports, state, tables
from cdp.ui.shell.text import count, cut, md, moment, number

PER_PAGE = 20

LANGUAGES = {
    "ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pt": "Portuguese", "ru": "Russian", "zh": "Chinese",
    "unknown": "not recognised",
}  # fmt: skip


def facts(manifest: CorpusManifest) -> None:
    """The figures that say at a glance whether it was read as it should be."""
    words = manifest.words
    with st.grid(4, min_column_width=150):
        st.metric("Documents", number(manifest.n_documents), border=True, height="stretch")
        st.metric(
            "Median length",
            f"{number(words.median)} words",
            border=True,
            height="stretch",
            help=f"Shortest {number(words.min)}, mean {number(words.mean)}, 95% at most {number(words.p95)}, "
            f"longest {number(words.max)} words.",
        )
        st.metric("Language", language(manifest), border=True, height="stretch", help="Detected from a sample.")
        st.metric(
            "Rejected rows",
            number(manifest.n_rejected),
            border=True,
            height="stretch",
            help="Rows that could not be imported. Each is listed below with its line number and the reason.",
        )
    parts = [f"imported from {manifest.source}", moment(manifest.created), *manifest.formats]
    if manifest.licence:
        parts.append(f"licence: {manifest.licence}")
    st.caption(md(" · ".join(part for part in parts if part)))
    if manifest.notes:
        with st.expander(f"{count(len(manifest.notes), 'note')} from the import", type="compact"):
            for note in manifest.notes:
                st.text(note)


def language(manifest: CorpusManifest) -> str:
    """The languages with their shares, the most frequent first: ``English`` or ``English 80%, French 20%``."""
    shares = [(LANGUAGES.get(code, code), share) for code, share in manifest.languages.items() if share >= 0.01]
    if not shares:
        return "–"
    if len(shares) == 1:
        return shares[0][0]
    return ", ".join(f"{name} {share:.0%}" for name, share in shares[:3])


def lengths(manifest: CorpusManifest) -> None:
    """The distribution of document lengths."""
    words = manifest.words
    beyond = f" {count(words.above, 'longer document')} not shown." if words.above else ""
    charts.show(
        length_histogram(words.edges, words.counts),
        key="lengths",
        alt=f"Histogram of document lengths: median {words.median:.0f} words, from {words.min} to {words.max}.",
        caption=f"Half of the documents have at most {number(words.median)} words, 95% at most "
        f"{number(words.p95)}.{beyond}",
    )


def browse(workspace: Workspace, manifest: CorpusManifest) -> None:
    """The documents in pages, with a search; a chosen one is shown whole."""
    st.subheader("Documents", anchor=False)
    wanted = st.text_input(
        "Search the documents",
        type="search",
        key=f"search_{manifest.id}",
        placeholder="word in the title or text, or document ID",
        label_visibility="collapsed",
    )
    if wanted:
        documents = corpora.page(workspace, manifest.id, 0, PER_PAGE, search=wanted)
        st.caption(
            "No matching documents." if not documents else f"First {count(len(documents), 'matching document')}."
        )
    else:
        offset = tables.pager(manifest.n_documents, PER_PAGE, f"page_{manifest.id}")
        documents = corpora.page(workspace, manifest.id, offset, PER_PAGE)
    if not documents:
        return
    row = tables.pick_row(
        {
            "ID": [d.id for d in documents],
            "Title": [d.title for d in documents],
            "Text": [cut(" ".join(d.text.split()), 300) for d in documents],
        },
        alt=f"Documents of the corpus {manifest.name}; choose one to read it in full",
        key=f"documents_{manifest.id}",
        config={"Text": st.column_config.TextColumn(width="large")},
    )
    if row is None:
        st.caption("Choose a row to read the whole document.")
        return
    _whole(manifest, documents[row])


def linked(workspace: Workspace, manifest: CorpusManifest) -> None:
    """The document that a link names, for as long as its corpus is shown."""
    wanted = st.query_params.get("document")
    if not wanted:
        return
    try:
        document = corpora.document(workspace, manifest.id, wanted)
    except NotFoundError:
        st.warning(f"The link names the document {md(wanted, 80)}, which is not in {md(manifest.name, 80)}.")
        return
    _whole(manifest, document)


def _whole(manifest: CorpusManifest, document: Document) -> None:
    with st.container(border=True):
        st.markdown(f"**{md(document.title or document.id)}**")
        st.text(document.text)
        state.keep("document", document.id)
        frame.navigation.link("queries", "See queries for this document", corpus=manifest.id, document=document.id)


def rejected(manifest: CorpusManifest) -> None:
    """Every row that was not taken, with its file, line and reason."""
    if not manifest.n_rejected:
        return
    st.subheader("Rejected rows", anchor=False)
    kinds = ", ".join(f"{kind} ({n:,})" for kind, n in manifest.rejected_counts.items())
    st.caption(md(f"{count(manifest.n_rejected, 'row')} could not be imported: {kinds}."))
    rows = manifest.rejected
    tables.show(
        {
            "File": [r.file for r in rows],
            "Line": [r.line for r in rows],
            "Reason": [r.reason for r in rows],
            "Excerpt": [r.excerpt for r in rows],
        },
        alt="Rows that could not be imported, with file, line and reason",
    )
    if len(rows) < manifest.n_rejected:
        st.caption(f"Showing the first {len(rows):,}.")


def faults(workspace: Workspace, manifest: CorpusManifest) -> None:
    """The rows that an error of ours cost, each with its text and traceback."""
    failures = corpora.failed(workspace, manifest.id)
    if not failures.summary.n:
        return
    title = f"{count(failures.summary.n, 'row')} failed with an unexpected error"
    folded = st.expander(title, icon=":material/warning:", on_change="rerun", key=f"faults_{manifest.id}")
    if folded.open:
        with folded:
            failed.listing(failures.summary.first, failures.summary.n, key=f"faults_of_{manifest.id}")
            st.caption("The full list, with texts and tracebacks, is in:")
            st.code("\n".join(map(str, failures.files)), language=None, wrap_lines=True)


def remove(workspace: Workspace, manifest: CorpusManifest) -> None:
    """Delete the corpus, after asking."""
    with st.popover("Delete this corpus", icon=":material/delete:", type="tertiary"):
        st.markdown(f"Delete **{md(manifest.name)}** and its {count(manifest.n_documents, 'document')}?")
        st.caption("Delete its query sets first.")
        if access.button("Delete", key=f"delete_{manifest.id}", icon=":material/delete:"):
            with frame.guarded():
                corpora.delete(workspace, manifest.id)
                state.keep("corpus", None)
                st.query_params.clear()
                imports.remember(f"{manifest.name} is deleted.", ["Nothing else was changed."])
                st.rerun()
