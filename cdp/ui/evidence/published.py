"""The paper's tables on screen, the scatter over CW, prior work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from cdp import principle
from cdp.base.workspace import Workspace
from cdp.charts.evidence import difference_against_cw
from cdp.principle import Correlation, Difference, Threshold
from cdp.principle.tables import (
    COLUMNS,
    MARKS_HELP,
    TABLES,
    PublishedTable,
    prior_work,
    short_name,
    table,
    to_csv,
    wide,
)
from cdp.services import commands
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import count, interval, md, p_value

FIELLER = (
    "Fieller's interval from the dataset means; this one holds for new datasets. A dash means no bounds, because the "
    "slope does not differ from zero. See docs/METHODS.md for its coverage with four datasets."
)


def page(_: Workspace) -> None:
    choice = str(
        forms.segments(
            "Datasets", principle.DATASET_CHOICES, default=principle.MULTI_HOP, key="evidence_datasets",
            help="The paper draws its threshold from the four multi-hop datasets. It also prints Q/Doc scaling on all "
            "31 datasets whose CW it gives.",
        )
    )  # fmt: skip

    data = principle.differences(choice)
    fit = principle.threshold(data)
    correlations = principle.correlation_table(data)
    _answer(fit, correlations, choice)

    if choice == principle.MULTI_HOP:
        without = ", ".join(f"{name} {value:.2f}" for name, value in fit.without_each.items() if value is not None)
        st.caption(
            f"Zero crossing when one dataset is left out: {md(without)}. The rule above 10 rests on NovelHopQA alone "
            "(CW 11.64), the rule below 7 on 2WikiMultihopQA alone (6.34); the other two datasets are at 8.60 and 8.64."
        )

    _scatter(data, fit)
    _prior_work()
    _all_tables()
    why = "test whether this holds for your documents and your task."
    frame.next_step("decide", "Test it on my data", why, "evidence_next", test="1")


def _answer(fit: Threshold, correlations: Sequence[Correlation], choice: str) -> None:
    """What the evidence says, and how much of it is independent."""
    significant = sum(c.p < 0.05 for c in correlations)

    if choice == principle.MULTI_HOP:
        st.markdown(
            f"#### The gain from diverse queries crosses zero at CW {fit.crossing:.2f}\nIn {significant} of "
            f"{len(correlations)} conditions the gain grows significantly with content words. But only "
            f"**{fit.n_datasets} independent datasets** are behind the {fit.n_points} differences: counting each once, "
            f"r is {fit.r_of_dataset_means:.2f} and p {p_value(fit.p_of_dataset_means)}."
        )
    else:
        st.markdown(
            f"#### Over all {fit.n_datasets} datasets, content words explain little of the gain\nCounting each "
            f"dataset once, r is {fit.r_of_dataset_means:.2f} (p {p_value(fit.p_of_dataset_means)}); {significant} "
            f"of {len(correlations)} conditions are significant. BRIGHT's long queries have the most content words and "
            "gain no more than others."
        )

    tables.figures(
        ("Zero crossing (CW)", f"{fit.crossing:.2f}"),
        ("95% interval (datasets)", interval(fit.by_dataset), FIELLER),
        ("Range, one dataset left out", interval(fit.without_one_dataset)),
        ("Points per content word", f"{fit.slope:+.2f}"),
        ("Independent datasets", str(fit.n_datasets)),
    )


def _scatter(data: Sequence[Difference], fit: Threshold) -> None:
    charts.show(
        difference_against_cw(data, fit),
        key="evidence_scatter",
        alt=f"{len(data)} differences in NDCG@10 against the mean content words of {fit.n_datasets} datasets, with the "
        f"fitted line (slope {fit.slope:.2f}, zero at {fit.crossing:.2f}) and its 95% band.",
        caption="Each point is one condition on one dataset; hover for details. The band is for the line "
        f"through the {fit.n_datasets} dataset means.",
    )


def _prior_work() -> None:
    st.subheader("Other work", anchor=False)
    works = prior_work()
    against = "\n".join(f"- {work.disagreement}" for work in works if work.against)
    st.markdown(f"**It disagrees with the principle in places:**\n{against}")
    with st.expander(f"{count(len(works), 'publication')} on synthetic queries", icon=":material/library_books:"):
        for work in works:
            first = work.authors.split(",")[0]
            st.markdown(
                f"- **[{md(first)} {work.year}: {md(work.title)}]({work.url})**  \n  {md(work.finding)}  \n  "
                f":gray[Figures: {md(work.figures)} Read: {md(work.read)}.]"
            )


def _all_tables() -> None:
    """Every table of the paper, to filter and sort, with notes where printed numbers disagree."""
    st.subheader("All tables of the paper", anchor=False)
    names = {short_name(name): info.title for name, info in TABLES.items()}
    name = state.choose("Table", names, "table", what="published table")
    if name is None:
        return

    published_table = table(name)
    st.caption(published_table.info.about)
    rows = published_table.rows

    if published_table.is_scores:
        columns, lines = wide(published_table, rows)
        tables.show(
            {column: [_text(line.get(column)) for line in lines] for column in columns},
            alt=f"{published_table.info.title}: {published_table.info.about}",
        )
        st.caption(MARKS_HELP)
    else:
        _long(published_table, rows)

    _notes(published_table, rows)
    forms.download("Download as CSV", to_csv(published_table), f"{name.replace(':', '-')}.csv", key="evidence_csv")
    forms.command(commands.line("published", "show", name), commands.line("principle", "correlation"))


def _long(published_table: PublishedTable, rows: Sequence[dict[str, Any]]) -> None:
    """A table that holds no scores: one line per number."""
    titles = {**COLUMNS, "value": "Value", "value_printed": "As printed"}
    columns: dict[str, list[Any]] = {}
    for name in published_table.columns:
        values = [row[name] for row in rows]
        if not all(isinstance(value, int | float | None) for value in values):
            values = list(map(_text, values))
        columns[titles.get(name, name.replace("_", " ").capitalize())] = values

    if any(row["notes"] for row in rows):
        columns["Notes"] = [", ".join(map(str, row["notes"])) for row in rows]

    tables.show(
        columns,
        alt=f"{published_table.info.title}, one line per number",
        digits={"Value": 2},
    )


def _notes(published_table: PublishedTable, rows: Sequence[dict[str, Any]]) -> None:
    """The notes on the rows on screen, and those on the whole table."""
    wanted = set(published_table.on_all).union(*(row["notes"] for row in rows))
    if not wanted:
        return
    with st.expander(f"{count(len(wanted), 'note')} on these numbers", icon=":material/sticky_note_2:"):
        for number in sorted(wanted):
            note = published_table.related[number]
            where = "all rows" if number in published_table.on_all else f"[{number}]"
            line = f"- {md(where)} {md(note.note)}"

            facts = []
            if note.printed:
                facts.append(f"printed: {md(note.printed)}")
            if note.computed:
                facts.append(f"computed: {md(note.computed)}")
            if facts:
                line += f"  \n  :gray[{'; '.join(facts)}]"

            st.markdown(line)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
