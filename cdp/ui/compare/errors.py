"""What stood first: the queries that only one of two retrievers answers at rank 1, side by side, and gains by CW."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from html import escape

import streamlit as st

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.charts.decide import gains_by_cw
from cdp.services import evaluated
from cdp.services import result_errors as result_errors
from cdp.services import result_files as result_files
from cdp.services.evaluated import Passage
from cdp.services.result_errors import AUTO, FIELDS, ID_PREFIX, Errors
from cdp.services.results import ComparedRow, Comparison
from cdp.ui.shell import charts, failed, state, tables
from cdp.ui.shell.text import count, cut, md, points

SHOWN_CHARACTERS = 1200
MOST_CASES = 200

SOURCES = {AUTO: "Automatic (a shared field, else the ID)", ID_PREFIX: "ID without its trailing number"}
SOURCES |= {name: f"Field “{name}”" for name in FIELDS}


def first_places(workspace: Workspace, comparison: Comparison, row: ComparedRow) -> None:
    """Wins and losses at P@1 with their passages, and where the gains sit by CW."""
    with st.container(width=360):
        source = state.choose(
            "Source of a passage",
            SOURCES,
            "source",
            help="Passages of one source belong to the same document, such as a book or an article. The wrong "
            "passage of the right source is a smaller error than another document.",
        )
    try:
        errors = result_errors.analyse(
            workspace,
            row.baseline_evaluation_id or "",
            row.evaluation_id,
            source=source or AUTO,
            within=comparison,
        )
    except CdpError as error:
        st.caption(md(str(error)))
        return
    _counts(errors)
    _case(errors)
    _gains(errors)
    if errors.n_failed:
        st.caption(f":material/warning: {count(errors.n_failed, 'query', 'queries')} could not be analysed.")
        failed.listing(errors.failed, errors.n_failed, key="errors_failed")


def _counts(errors: Errors) -> None:
    groups = ((errors.other, errors.wins, errors.baseline), (errors.baseline, errors.losses, errors.other))
    tables.show(
        {
            "Correct at rank 1": [f"only {right}" for right, _, _ in groups],
            "Queries": [len(cases) for _, cases, _ in groups],
            "Other retriever": [wrong for _, _, wrong in groups],
            **{
                kind[:1].upper() + kind[1:]: [errors.kinds(cases)[kind] for _, cases, _ in groups]
                for kind in result_errors.KINDS
            },
        },
        alt="Queries that only one of the two retrievers answers at rank 1, and what the other put first",
    )
    st.caption(
        f"Of {errors.n_queries:,} queries, both are correct at rank 1 on {errors.both:,} and neither on "
        f"{errors.neither:,}. {errors.rule} Same source: the right document, the wrong passage."
    )


def _case(errors: Errors) -> None:
    """One query with the two passages side by side, content words underlined."""
    cases = [(f"only {errors.other}", case) for case in errors.wins] + [
        (f"only {errors.baseline}", case) for case in errors.losses
    ]
    if not cases:
        return
    titles = {case.query_id: f"{who}: {cut(case.query or case.query_id, 90)}" for who, case in cases[:MOST_CASES]}
    picked = state.choose("Query", titles, "query", what="query")
    case = next((case for _, case in cases if case.query_id == picked), cases[0][1])
    won = case in errors.wins
    st.html(f"<p>{underlined(case.query, case.words)}</p>")
    left, right = st.columns(2, gap="medium")
    right_of, wrong_of = (errors.other, errors.baseline) if won else (errors.baseline, errors.other)
    _passage(left, f"Correct: ranked first by {right_of}", case.right, case.words)
    _passage(right, f"Wrong ({case.kind}): ranked first by {wrong_of}", case.wrong, case.words)
    st.caption("The query's content words are underlined.")


def _passage(
    column: st.delta_generator.DeltaGenerator, title: str, passage: Passage | None, words: Collection[str]
) -> None:
    with column.container(border=True):
        st.markdown(f"**{md(title, 120)}**")
        if passage is None:
            st.caption("No result, or a document that is no longer in the benchmark.")
            return
        st.text(cut(f"{passage.id} · {passage.title}" if passage.title else passage.id, 120))
        st.html(f"<p>{underlined(cut(passage.text, SHOWN_CHARACTERS), words)}</p>")


def underlined(text: str, words: Collection[str]) -> str:
    """HTML that shows ``text`` as it is, every character of it escaped, with the ``words`` in it underlined."""
    pieces = result_errors.marked(text, words)
    return "".join(f"<u>{escape(piece)}</u>" if marked else escape(piece) for piece, marked in pieces)


def _gains(errors: Errors) -> None:
    there = [bucket for bucket in errors.gains if bucket.mean is not None]
    if not there:
        return
    summary = "; ".join(f"{b.name}: {points(b.mean or 0.0)} over {b.n} queries" for b in there)
    charts.show(
        gains_by_cw(errors.gains),
        key="gains_by_cw",
        alt=f"Mean difference in NDCG@10 points by the content words of the query. {summary}.",
        caption="Mean difference by the number of content words in the query, with 95% intervals over those queries.",
    )
    tables.show(
        {
            "Content words": [b.name for b in there],
            "Queries": [b.n for b in there],
            "Difference": [points(b.mean or 0.0) for b in there],
            "95% interval": [
                f"{points(b.interval[0])} to {points(b.interval[1])}" if b.interval else "–" for b in there
            ],
        },
        alt="Mean difference by content words, with its interval and the number of queries",
    )


def files(workspace: Workspace, comparison: Comparison, row: ComparedRow) -> None:
    """The evaluation in the files of other tools."""
    titles = {
        "trec-run": "TREC run",
        "trec-qrels": "TREC qrels",
        "mteb": "MTEB-style JSON",
        "mteb-predictions": "MTEB predictions",
        "ir-measures": "ir_measures scores",
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        for form in result_files.available(
            workspace, evaluated.find(workspace, row.evaluation_id, comparison.evaluations)
        ):
            st.download_button(
                titles[form],
                partial(result_files.content, workspace, row.evaluation_id, form),
                file_name=f"{row.evaluation_id}{result_files.SUFFIXES[form]}",
                icon=":material/download:",
                type="tertiary",
                on_click="ignore",
                key=f"file_{form}",
            )
