"""Query sets: names with (incomplete), import form, who wrote it, one set by document, deletion."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.query_sets import usable
from cdp.services import commands, completeness, queries
from cdp.services.completeness import Completeness
from cdp.services.corpora import CorpusManifest
from cdp.services.queries import ImportOptions, QuerySet
from cdp.synthesis import pricing
from cdp.ui import jobs as job_views
from cdp.ui.shell import columns, forms, frame, state
from cdp.ui.shell.tables import count, md


def set_name(workspace: Workspace, query_set: QuerySet) -> str:
    """Return a query set's name; an incomplete one says so in brackets."""
    return completeness.check(workspace, query_set).name


def set_names(workspace: Workspace, query_sets: Iterable[QuerySet]) -> dict[str, str]:
    """The names of query sets by id, for a list to choose from."""
    return {q.id: set_name(workspace, q) for q in query_sets}


def incomplete_notes(workspace: Workspace, query_sets: Iterable[str]) -> list[Completeness]:
    """Draw what each of these sets (by id) lacks, with a link to its job. Return the incomplete ones."""
    incomplete_sets = completeness.list_incomplete(workspace, query_sets)
    for item in incomplete_sets:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(md(item.note), icon=":material/warning:")
            if item.job_state:
                frame.link("jobs", "Open job", icon=":material/progress_activity:", job=item.job_id)
    return incomplete_sets


OF_QUERIES = ("query_field", "document_field", "grade_field")
TYPES = ["jsonl", "ndjson", "json", "csv", "tsv", "gz", "parquet"]


def add(workspace: Workspace, manifest: CorpusManifest) -> None:
    """Import queries that exist already, human ones for instance."""
    with st.expander("Import existing queries", icon=":material/upload_file:", key="import_queries"):
        st.caption("One row per query with the ID of its document (JSONL, JSON, CSV or TSV).")
        uploads, path = forms.source("Queries", "queries", TYPES)
        name = st.text_input("Name", key="queries_name", placeholder="taken from the file name", max_chars=80)
        chosen = forms.fields(ImportOptions, key="queries_read", leave_out=OF_QUERIES)

        if uploads or path:
            with frame.guarded(), forms.opened(workspace, uploads, path) as (file, _):
                seen = queries.examine(workspace, file, chosen.get("encoding", ""), chosen.get("header", True))
                columns.rows(seen)
                guessed = dict(zip(OF_QUERIES, (seen.asked, seen.document_id, seen.grade), strict=True))
                chosen |= columns.dropdowns(ImportOptions, seen, OF_QUERIES, guessed, "queries_read")

        pressed = forms.button("Import queries", icon=":material/upload_file:", key="queries_add")
        shown = path or (uploads[0].name if uploads else "PATH")
        forms.command(commands.line("queries", "import", shown, corpus=manifest.id, config=chosen, name=name))

        if not pressed:
            return

        with frame.guarded():
            options = ImportOptions.from_dict(chosen)
            with st.spinner("Reading the queries"), forms.opened(workspace, uploads, path) as (file, _):
                done = queries.import_file(workspace, file, manifest.id, name=name, options=options)

            notes = [*done.notes, *done.rejected]

            if done.n_rejected > len(done.rejected):
                notes.append(f"and {done.n_rejected - len(done.rejected)} more rows that could not be imported")

            query_set = done.query_set
            forms.remember(
                f"{query_set.name}: {count(query_set.n_queries, 'pair')} for "
                f"{count(query_set.n_documents, 'document')}.",
                notes,
            )
            state.keep("query_set", query_set.id)
            st.rerun()


def facts(workspace: Workspace, query_set: QuerySet) -> None:
    """Who wrote the queries, under which licence and at what cost, and the documents without queries."""
    licence = f" Licence: {md(query_set.licence)}." if query_set.licence else ""
    st.caption(f"Written by: {md(query_set.written_by)}.{licence}")
    frame.remarks([*usable.shared(query_set), *usable.q_doc_notes(workspace, [query_set])])
    job_views.bill(pricing.bill_of_job(workspace, query_set.job_id) if query_set.job_id else None)
    # The documents without queries or with too few, or the rows that an import rejected.
    n, unit = query_set.n_failures, queries.unit(workspace, [query_set.corpus_id])
    what = f"{count(n, 'row')} rejected" if query_set.imported else f"{count(n, unit)} without queries"
    forms.failed(n, what, lambda: queries.failures(workspace, query_set.id), key=f"lacks_{query_set.id}")


def remove(workspace: Workspace, query_set: QuerySet) -> None:
    """Delete the set, after asking."""
    forms.deletion(
        "Delete this query set", f"Delete **{md(query_set.name)}** with {count(query_set.n_queries, 'pair')}?",
        "Retrievers trained on it are kept.", partial(queries.delete, workspace, query_set.id), key=query_set.id,
        param="query_set", told=f"{query_set.name} is deleted.",
    )  # fmt: skip
