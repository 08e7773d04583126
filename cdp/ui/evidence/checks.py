"""What the evidence is worth: which datasets the rule rests on, whether predictions held, each claim computed anew."""

from __future__ import annotations

import streamlit as st

from cdp.principle import Threshold
from cdp.principle import claims as paper
from cdp.principle.claims import Prediction
from cdp.principle.tables import notes
from cdp.ui.shell import forms, navigation, tables
from cdp.ui.shell.text import md, points

VERDICTS = {"holds": ":green[holds]", "partly": ":orange[partly]", "does not hold": ":red[does not hold]"}


def rests_on(fit: Threshold) -> None:
    """The crossing without each dataset, and what the two lines of the rule have behind them."""
    without = ", ".join(f"{name} {value:.2f}" for name, value in fit.without_each.items() if value is not None)
    st.caption(
        f"Zero crossing when one dataset is left out: {md(without)}. The rule above 10 rests on NovelHopQA alone (CW "
        "11.64), the rule below 7 on 2WikiMultihopQA alone (6.34); the other two datasets are at 8.60 and 8.64."
    )


def prediction_check() -> None:
    """Predictions for the published datasets that the line never saw."""
    st.subheader("Do predictions hold for new datasets?", anchor=False)
    per_doc = forms.segments("Q/Doc", list(paper.PER_DOCS), default=5, key="evidence_check")
    dataset_checks = paper.checks(per_doc)
    held = paper.held(dataset_checks)
    tables.figures(*((name[0].upper() + name[1:], f"{value.held} of {value.n}") for name, value in held.items()))
    tables.show(
        {
            "Dataset": [c.dataset for c in dataset_checks],
            "CW": [c.cw for c in dataset_checks],
            "Measured": [points(c.measured) for c in dataset_checks],
            "Regression line": [points(c.line.points) for c in dataset_checks],
            "95% prediction interval": [_span(c.line) for c in dataset_checks],
            "Within the interval": [_holds(c.line, beyond=not c.in_range) for c in dataset_checks],
            "Similar datasets": [points(c.similar.points) for c in dataset_checks],
            "Their 95% interval": [_span(c.similar) for c in dataset_checks],
            "Within their interval": [_holds(c.similar) for c in dataset_checks],
        },
        alt="Measured and predicted gains of the published datasets that were not used for the line",
        config={"CW": st.column_config.NumberColumn(format="%.2f")},
    )
    st.caption(
        "Gain of diverse queries at this Q/Doc over one query per document, mean of both retrievers. The regression "
        "line goes through the four multi-hop datasets; outside its CW range it mostly fails, so it is not used "
        "there. Similar datasets: the five most similar by task type and CW, without the dataset itself."
    )


def _span(prediction: Prediction) -> str:
    return f"{points(prediction.low)} to {points(prediction.high)}"


def _holds(prediction: Prediction, *, beyond: bool = False) -> str:
    return ("yes" if prediction.holds else "no") + (", outside its CW range" if beyond else "")


def claims() -> None:
    """Each claim of the paper, what its own figures give, the conflict if any, and a study that tests it."""
    st.subheader("The paper's claims, recomputed", anchor=False)
    st.caption(
        "Each claim in our words, with the result recomputed from the printed scores. A study tests it on your data."
    )
    by_number = {note.id: note for note in notes()}
    for claim in paper.claims():
        with st.container(border=True):
            st.markdown(f"**{md(claim.name)}** · {VERDICTS[claim.verdict]}  \n{md(claim.claim)}")
            st.markdown(f"**Computed:** {md(claim.recomputed)}")
            if claim.notes:
                with st.expander("Where the paper contradicts itself", icon=":material/sticky_note_2:"):
                    for number in claim.notes:
                        st.markdown(f"- [{number}] {md(by_number[number].note)}")
            with st.container(horizontal=True, vertical_alignment="center"):
                st.caption(f"Printed in: {md(claim.where.replace('_', ' '))}")
                if claim.plan:
                    navigation.link("study", "Test it on your data", icon=":material/science:", plan=claim.plan)
                else:
                    st.caption(f"No ready-made study. {md(claim.test)}")


def limits() -> None:
    """The limits that the paper states."""
    st.subheader("Limits that the paper states", anchor=False)
    for limit in paper.limits():
        st.markdown(f"- {md(limit.stated)}  \n  :gray[{md(limit.recomputed)}]")
