"""The Documents page: import form, column dropdowns, first rows, passage length; documents, languages, rejections."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import streamlit as st
from streamlit.typing import UploadedFile

from cdp.base.errors import NotFoundError, some
from cdp.base.records import Document
from cdp.base.text import tally
from cdp.base.workspace import Workspace
from cdp.complexity import language_of
from cdp.corpus import looking
from cdp.corpus.looking import FilePreview
from cdp.corpus.options import PASSAGE_WORDS
from cdp.query_sets.given import AddOptions
from cdp.services import adding, commands, corpora
from cdp.services.adding import Added, Look
from cdp.services.corpora import CorpusManifest, ReadOptions
from cdp.ui.shell import columns, forms, frame, state, tables
from cdp.ui.shell.tables import count, cut, md, moment, number

COLUMNS = ("id_field", "title_field", "text_field", "query_field", "grade_field")
# Named also where their names tell: rows may be found by other rules.
NAMED = ("text_field", "query_field")
OF_QUERIES = ("query_field", "document_field", "split_field", "grade_field")
NEW = "new"
# Where the session counts its imports.
_TURN = "corpus_imports"

# Words of a passage that the slider offers; 0 keeps documents whole.
LENGTHS = (0, 50, 75, 100, 125, 150, 200, 250, 300, 400, 500)

# Where the session holds the last look, with what was looked at: an upload is written to disk for each.
_SEEN = "corpus_seen"


def form(workspace: Workspace) -> None:
    """Draw the import form. The result is shown when the page is next drawn."""
    uploads, path = forms.source(
        "Documents, and queries and judgments if you have them", "corpus", None, turn=turn(),
        help="Tables, JSON Lines, PDF, Word, slides, web pages, EPUB, Markdown, texts, zips of them, or a BEIR layout, "
        "which brings its benchmark along. Files that cannot be read are listed after the import.",
    )  # fmt: skip

    queries_path = ""

    if path:
        queries_path = st.text_input(
            "File of queries (optional)", key="corpus_queries_path",
            help="A query and a document's id in each row, maybe a split and a grade.",
        ).strip()  # fmt: skip

    with st.expander("File format options", icon=":material/tune:"):
        how = forms.fields(ReadOptions, key="read", leave_out=(*COLUMNS, "passages"))

    # Asked for where a PDF needs it, below what was seen with it.
    password = st.session_state.get(f"corpus_password{turn()}", "")
    seen: Look | None = None
    named: dict[str, Any] = {}

    if uploads or path:
        with frame.guarded():
            seen = _look(workspace, uploads, path, queries_path, how, password)
            if seen.documents.locked or password:
                _ask_password(seen.documents.locked, password)
            named, passages = _mapping(seen)
            if passages is not None:
                how["passages"] = passages

    name, joined = _name_and_project(workspace)

    with st.container(horizontal=True):
        pressed = forms.button("Import documents", type="primary", icon=":material/upload_file:", key="corpus_add")
        forms.demo_button(workspace, "corpus_demo")

    shown = path or _named(uploads)
    settings = {**how, **named}
    forms.command(
        commands.line("projects", "add", shown, config=settings, queries=queries_path, name=name, project=joined)
    )

    looked = seen is not None or not (uploads or path)  # what cannot be looked at has been said already
    if pressed and looked:
        with frame.guarded():
            with (
                st.spinner("Reading and checking the documents"),
                forms.opened(workspace, uploads, path, queries_path) as (file, asked),
            ):
                added = adding.add(
                    workspace, file, asked or "", name=name, project=joined,
                    options=AddOptions.from_dict(named), reading=ReadOptions.from_dict(how),
                    passwords=list(filter(None, [password])),
                )  # fmt: skip

            remember(added)
            st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1
            st.rerun()


def _named(uploads: Sequence[UploadedFile]) -> str:
    """What was uploaded, as the command names it: the file or folder, or a word for what is still to be named."""
    if not uploads:
        return "PATH"

    top, inside, _ = uploads[0].name.partition("/")
    if inside or len(uploads) == 1:
        return top
    return "FOLDER"


def turn() -> str:
    """The ending of the form's widget keys. It changes with each import, which empties and folds the form."""
    imports = st.session_state.get(_TURN, 0)
    return f"_{imports}" if imports else ""


def _look(
    workspace: Workspace,
    uploads: Sequence[UploadedFile],
    path: str,
    queries_path: str,
    how: Mapping[str, Any],
    password: str,
) -> Look:
    """Return a preview of the chosen files. It is kept for the session: a page is drawn at every click."""
    what = (tuple(upload.file_id for upload in uploads), path, queries_path, repr(how), hash(password))
    kept = st.session_state.get(_SEEN)
    if isinstance(kept, tuple) and kept[0] == what:
        return kept[1]

    with forms.opened(workspace, uploads, path, queries_path) as (file, asked):
        reading = ReadOptions.from_dict(how)
        passwords = list(filter(None, [password]))
        seen = adding.examine(workspace, file, asked or "", reading=reading, passwords=passwords)

    st.session_state[_SEEN] = (what, seen)
    return seen


def _ask_password(locked: Sequence[str], password: str) -> None:
    if locked:
        text = "This password does not open" if password else "Protected by a password:"
        st.warning(md(f"{text} {some(locked, adding.SHOWN)}."), icon=":material/lock:")
    forms.secret("Password of PDFs", key=f"corpus_password{turn()}", help="Tried on encrypted PDFs; never stored.")


def _mapping(seen: Look) -> tuple[dict[str, Any], int | None]:
    """Show what was seen and ask for the role of each column.

    Return the options that differ from their defaults, and the words of a passage (None for the default).
    """
    documents, queries = seen.documents, seen.queries
    named: dict[str, Any] = {}

    if seen.splits:
        st.markdown(f"**BEIR layout** with the splits {md(', '.join(seen.splits))}: corpus, benchmark and queries.")
        columns.rows(documents)
        return named, _passages(documents)

    if documents.columns:
        columns.rows(documents)
        roles = dict(zip(COLUMNS, (documents.guess("id"), documents.guess("title"), documents.text), strict=False))
        if queries is None:
            asked = documents.queries
            roles |= {"query_field": asked, "grade_field": documents.grade if asked else None}
        named |= columns.dropdowns(AddOptions, documents, tuple(roles), roles, "corpus", NAMED)
    else:
        frame.remarks(list(documents.notes))

    passages = None
    if documents.blocks or documents.columns:
        passages = _passages(documents)

    if queries is not None:
        st.markdown(f"**Queries** in {md(queries.file)}")
        columns.rows(queries)
        found = (queries.asked, queries.document_id, queries.guess("split"), queries.grade)
        roles = dict(zip(OF_QUERIES, found, strict=True))
        named |= columns.dropdowns(AddOptions, queries, OF_QUERIES, roles, "asked", NAMED)

    if named.get("query_field") or (queries or documents).queries:
        with st.expander("Queries held out for measuring", icon=":material/tune:"):
            named |= forms.fields(AddOptions, key="corpus_adding", leave_out=(*COLUMNS, *OF_QUERIES, "with_queries"))

    return named, passages


def _passages(preview: FilePreview) -> int | None:
    """Ask for the words of a passage and show how a document would be cut; None for the usual length."""
    of_files = bool(preview.blocks)
    usual, whole, key = 0, "whole rows", "corpus_rows"
    if of_files:
        usual, whole, key = PASSAGE_WORDS, "whole files", "corpus_passages"
        st.markdown(f"**Passages** of {md(preview.document)}")

    words = st.select_slider(
        "Words of a passage",
        LENGTHS,
        value=usual,
        key=key,
        format_func=lambda n: f"{n}" if n else whole,
        persist_state="session",
        help="Cut at headings, paragraphs and sentences; each passage begins with the end of the one before it.",
    )

    chosen = None if words == usual else int(words)
    if preview.columns and chosen:
        st.caption("Longer rows are cut: ID#1, ID#2 …; queries beside them are left out.")
    if not of_files:
        return chosen

    rows = []
    for passage in preview.passages(words):
        section = " › ".join(passage.section)
        rows.append({"Page": passage.pages, "Section": section, "Words": passage.words, "Text": _start(passage.text)})

    shown = tables.by_title(rows)
    lengths = " to ".join(number(words) for words in sorted({min(shown["Words"]), max(shown["Words"])}))
    unit = "passage" if words else "file"
    st.caption(
        f"{count(len(rows), 'passage')} in the part that was looked at, of {lengths} words. "
        f"Search, queries and scores are by {unit}."
    )
    tables.show(tables.filled(shown, "Text"), alt=f"How {preview.document} is cut into passages")

    return chosen


def _start(text: str) -> str:
    """The beginning of a document or passage on one line, for a table."""
    return cut(" ".join(text.split()), 300)


def _name_and_project(workspace: Workspace) -> tuple[str, str]:
    """Ask for a name and the project to join (empty: a new project of that name)."""
    current = state.scope(workspace).project
    name = st.text_input("Name", key="corpus_name", placeholder="taken from the file name", max_chars=80)
    if current is None:
        return name, ""
    where = forms.segments(
        "Project",
        {NEW: "A new project", current.id: f"Add to {md(current.name, 40)}"},
        key="corpus_project",
        persistent=False,
        help="A project holds the documents, benchmarks and queries of one task.",
    )
    if where == NEW:
        return name, ""
    return name, str(where)


def remember(added: Added, *, asked: bool = False) -> None:
    """Select what was added, and keep the report for when a page is next drawn. ``asked``: queries for documents that
    were here, not the documents."""
    notes = []
    if added.benchmark is not None:
        judged = tally(added.benchmark.judged, "{} {:,}")
        notes.append(f"Benchmark {added.benchmark.name}: queries by split: {judged}.")

    for query_set in added.query_sets:
        if "carried" not in query_set.parameters:
            notes.append(f"Query set {query_set.name}: {count(query_set.n_queries, 'pair')}.")

    if added.left_out:
        notes.append(f"Left out: {tally(added.left_out)}.")

    for note in (*added.stated, *added.missing):
        if note.rstrip(".") not in added.not_read:
            notes.append(note)

    done = "was already in the workspace" if added.existed else "was added"
    message = f"{added.corpus.name} {done}: {count(added.corpus.n_documents, added.corpus.unit)}."
    if asked and added.benchmark is not None:
        message = f"{count(added.benchmark.n_queries, 'judged query', 'judged queries')} for {added.corpus.name} added."
    forms.remember(message, notes, problem=looking.problem(added.corpus), details=added.not_read)
    state.only(state.PROJECT, added.project.id)

    if added.query_sets:
        state.keep("query_set", added.query_sets[0].id)

    state.write("corpus", added.corpus.id)


PER_PAGE = 20


def facts(manifest: CorpusManifest, told: str = "") -> None:
    """Figures that show whether the import is as expected; the problem ``told`` above is not repeated."""
    spread, unit = manifest.lengths

    problem = looking.problem(manifest)
    if problem and problem != told:
        # The same documents may have been added again without those files.
        when = f"In the first import, from {md(manifest.source)}, {moment(manifest.created)}."
        st.warning(f"{when} The list and the notes below give the reasons.", title=problem)

    lengths = f"From {number(spread.min)} to {number(spread.max)} {unit}, mean {number(spread.mean)}, 95% at most"
    tables.cards(
        (f"{manifest.unit.capitalize()}s", number(manifest.n_documents)),
        ("Median length", f"{number(spread.median)} {unit}", f"{lengths} {number(spread.p95)}."),
        ("Language", language(manifest), "Detected from a sample."),
        ("Not imported", number(manifest.n_rejected), "Rows, files and repeated passages, listed below with reasons."),
    )

    licence = manifest.licence and f"licence: {manifest.licence}"
    parts = [f"Imported from {manifest.source}", moment(manifest.created), *manifest.formats, licence]
    st.caption(md(" · ".join(filter(None, parts))))

    if manifest.notes:
        with st.expander(f"{count(len(manifest.notes), 'note')} from the import", type="compact"):
            for note in manifest.notes:
                st.text(note)


def language(manifest: CorpusManifest) -> str:
    """The languages with their shares, the most frequent first: ``English`` or ``English 80%, French 20%``."""
    shares = {}
    for code, share in manifest.languages.items():
        if share >= 0.01:
            shares[language_of(code).name] = share

    if len(shares) < 2:
        return next(iter(shares), "–")
    return ", ".join(f"{name} {share:.0%}" for name, share in islice(shares.items(), 3))


def browse(workspace: Workspace, manifest: CorpusManifest) -> None:
    """The documents in pages, with a search; a chosen one is shown in full."""
    st.subheader("Documents", anchor=False)
    wanted = st.text_input(
        "Search the documents", type="search", key=f"search_{manifest.id}", label_visibility="collapsed",
        placeholder="word in the title or text, or document ID",
    )  # fmt: skip

    offset = 0 if wanted else _pager(manifest.n_documents, f"page_{manifest.id}", manifest.unit)
    documents = looking.page(workspace, manifest.id, offset, PER_PAGE, search=wanted)

    if wanted:
        found = f"First {count(len(documents), f'matching {manifest.unit}')}."
        st.caption(found if documents else f"No matching {manifest.unit}s.")

    if not documents:
        return

    row = tables.pick_row(
        tables.by_title({"ID": d.id, "Title": d.title, "Text": _start(d.text)} for d in documents),
        alt=f"Documents of the corpus {manifest.name}; choose one to read it in full",
        key=f"documents_{manifest.id}",
        width={"Text": "large"},
    )
    if row is None:
        st.caption("Choose a row to read the whole document.")
    else:
        _whole(manifest, documents[row])


def _pager(n: int, key: str, unit: str) -> int:
    """Buttons to leaf through ``n`` documents; the offset of the first one shown. A single page has no buttons."""
    pages = max(1, math.ceil(n / PER_PAGE))
    if st.session_state.get(key, 1) > pages:
        st.session_state[key] = pages

    with st.container(horizontal=True, vertical_alignment="center"):
        page = 1
        if pages > 1:
            page = int(st.pagination(pages, key=key))

        first = (page - 1) * PER_PAGE
        if n:
            last = min(n, first + PER_PAGE)
            st.caption(f"{first + 1:,} to {last:,} of {count(n, unit)}", width="content")

    return first


def linked(workspace: Workspace, manifest: CorpusManifest) -> None:
    """The document that a link names, for as long as its corpus is shown."""
    wanted = st.query_params.get("document")
    if not wanted:
        return
    try:
        document = looking.document(workspace, manifest.id, wanted)
    except NotFoundError:
        st.warning(f"The link names the document {md(wanted, 80)}, which is not in {md(manifest.name, 80)}.")
        return
    _whole(manifest, document)


def _whole(manifest: CorpusManifest, document: Document) -> None:
    with st.container(border=True):
        st.markdown(f"**{md(document.title or document.id)}**")
        file, pages = manifest.place_of(document.id)
        if file != document.id:
            st.caption(f"{md(file)}{pages and f', {pages}'}")
        st.text(document.text)
        state.keep("document", document.id)
        frame.link("queries", "See queries for this document", corpus=manifest.id, document=document.id)


def files(manifest: CorpusManifest) -> None:
    """The files that were read, each with its format, encoding and language."""
    if manifest.n_files < 2 and not looking.losses(manifest):
        return

    rows = []
    # Those with words missing first: a long table shows its first rows.
    for file in sorted(manifest.files, key=lambda file: not file.loss):
        rows.append({
            "File": file.name,
            "Format": file.format,
            "Encoding": file.encoding,
            "Language": language_of(file.language).name,
            "Documents": file.n_documents,
            "Left out": tally(file.removed, "{} {:,}"),
            "Missing": list(filter(None, [file.loss])),
        })  # fmt: skip

    with st.expander(f"{count(manifest.n_files, 'file')} read", type="compact"):
        tables.show(
            tables.by_title(rows),
            about={"Left out": "Words that were left out on purpose, by kind."},
            config={"Missing": st.column_config.MultiselectColumn(color="orange", disabled=True)},
            alt="Files that were read, with format, encoding, language and the words that are missing",
        )
        if len(manifest.files) < manifest.n_files:
            st.caption(f"Showing the first {len(manifest.files):,}.")


def rejected(manifest: CorpusManifest) -> None:
    """The rows that were not imported, with file, line and reason."""
    if not manifest.n_rejected:
        return

    st.subheader("Rejected rows and files", anchor=False)
    kinds = tally(manifest.rejected_counts, "{} ({:,})")
    st.caption(md(f"{manifest.n_rejected:,} not imported: {kinds}."))
    rows = []
    for row in manifest.rejected:
        rows.append({"File": row.file, "Line or page": row.line, "Reason": row.reason, "Excerpt": row.excerpt})

    longest = max((len(row.reason) for row in manifest.rejected), default=0)
    tables.show(
        tables.filled(tables.by_title(rows), "File", "Line or page", "Reason"),
        # The end of a reason is its hint: a character takes 6 to 7 pixels.
        width={"File": 200, "Line or page": 100, "Reason": min(820, max(200, 7 * longest))},
        alt="Rows that could not be imported, with file, line and reason",
    )

    if len(rows) < manifest.n_rejected:
        st.caption(f"Showing the first {len(rows):,}.")


def faults(workspace: Workspace, manifest: CorpusManifest) -> None:
    """The rows that failed with an unexpected error, each with its text and traceback."""
    found = looking.failed(workspace, manifest.id)
    title = f"{count(found.n, 'row')} failed with an unexpected error"
    forms.failed(found.n, title, lambda: found, key=f"faults_{manifest.id}")


def remove(workspace: Workspace, manifest: CorpusManifest) -> None:
    """Delete the corpus, after asking."""
    forms.deletion(
        "Delete this corpus", f"Delete **{md(manifest.name)}** and its {count(manifest.n_documents, 'document')}?",
        "Nothing else is deleted.", partial(corpora.delete, workspace, manifest.id), key=manifest.id, param="corpus",
        told=f"{manifest.name} is deleted.",
    )  # fmt: skip
