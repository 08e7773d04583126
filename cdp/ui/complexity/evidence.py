"""What the recommendation rests on: the datasets most like the task, the published line, the splits of a budget."""

from __future__ import annotations

import streamlit as st

from cdp import principle
from cdp.charts.evidence import difference_against_cw
from cdp.principle import KINDS
from cdp.services.complexity import Recommendation
from cdp.ui.shell import charts, tables
from cdp.ui.shell.text import md, points


def similar(recommendation: Recommendation) -> None:
    """What happened on the published datasets most like the task."""
    if not recommendation.similar:
        return
    n = len(recommendation.similar)
    st.subheader(f"Results on the {n} published datasets most similar to yours", anchor=False)
    kinds = KINDS
    rows = [(s, retriever, gains) for s in recommendation.similar for retriever, gains in s.gains.items()]
    per_docs = sorted(rows[0][2])
    tables.show(
        {
            "Dataset": [s.dataset for s, _, _ in rows],
            "Task type": [kinds[s.kind] for s, _, _ in rows],
            "CW": [s.cw for s, _, _ in rows],
            "Retriever": [retriever for _, retriever, _ in rows],
            **{f"Q/Doc {m}": [points(gains[m]) for _, _, gains in rows] for m in per_docs},
        },
        alt="Printed gains of diverse queries over one query per document on the published datasets most similar "
        "to the task",
        config={"CW": st.column_config.NumberColumn(format="%.2f")},
    )
    st.caption(
        "Gain in NDCG@10 points over one query per document, as printed in the paper. Datasets are chosen by task "
        "type, then by CW; all are in English, with queries written by GPT-4o-mini."
    )
    if recommendation.outlook:
        with st.expander("Prediction for a new dataset", icon=":material/query_stats:"):
            tables.show(
                {
                    "Q/Doc": [o.per_doc for o in recommendation.outlook],
                    "Mean": [points(o.points) for o in recommendation.outlook],
                    "95% prediction interval": [f"{points(o.low)} to {points(o.high)}" for o in recommendation.outlook],
                    "Probability of a gain": [f"{o.probability:.0%}" for o in recommendation.outlook],
                    "Datasets": [o.n_datasets for o in recommendation.outlook],
                },
                alt="Prediction for a new dataset from the most similar published ones",
            )
            st.caption(
                "Based on Student's t over these datasets. The Evidence page shows how often such intervals held."
            )


def expected(recommendation: Recommendation) -> None:
    """The published line, and where these queries lie on it; nothing of it outside its evidence."""
    if not recommendation.expected:
        return
    st.subheader("Prediction from the published regression line", anchor=False)
    if recommendation.scope.unknown:
        st.markdown(md(recommendation.scope.text))
    evidence = principle.differences()
    fit = principle.threshold()
    charts.show(
        difference_against_cw(evidence, fit, here=recommendation.mean_cw),
        key="evidence",
        alt=f"{len(evidence)} published differences in NDCG@10 against content words, {fit.n_datasets} datasets; "
        f"the fitted line crosses zero at {fit.crossing:.2f}; these queries are at {recommendation.mean_cw:.2f}.",
        caption="Each point is one retriever on one dataset under one condition. Above zero, diverse queries "
        f"helped. These are only {fit.n_datasets} datasets, so read the line as a tendency.",
    )
    with st.expander("Expected differences at this CW", icon=":material/table_chart:"):
        tables.show(
            {
                "Comparison": [principle.COMPARISONS.get(e.comparison, e.comparison) for e in recommendation.expected],
                "Q/Doc": [e.per_doc for e in recommendation.expected],
                "Points": [points(e.points) for e in recommendation.expected],
                "95% prediction interval": [f"{points(e.low)} to {points(e.high)}" for e in recommendation.expected],
                "Probability of a gain": [f"{e.probability:.0%}" for e in recommendation.expected],
                "Datasets": [e.n_datasets for e in recommendation.expected],
            },
            alt="Expected differences in NDCG@10 points at this mean CW, with prediction intervals",
        )
        st.caption(
            "Difference in NDCG@10 points, from the line through the dataset means. The interval is for one new "
            "dataset, so it includes the variation between datasets."
        )


def splits(recommendation: Recommendation) -> None:
    """What the same number of queries is worth on fewer documents."""
    if not recommendation.splits:
        return
    first = recommendation.splits[0]
    inside = any(s.low is not None for s in recommendation.splits)
    with st.expander("Same number of queries on fewer documents", icon=":material/call_split:"):
        columns: dict[str, list[object]] = {
            "Q/Doc": [s.per_doc for s in recommendation.splits],
            **({} if first.documents is None else {"Documents": [s.documents for s in recommendation.splits]}),
            "Share of documents": [f"{s.documents_share:.0%}" for s in recommendation.splits],
            "LLM requests": [f"{s.llm_cost:.0%}" for s in recommendation.splits],
            **{
                f"{retriever}, {first.group}": [points(s.printed[retriever]) for s in recommendation.splits]
                for retriever in first.printed
            },
        }
        if inside:
            columns["Regression line"] = [points(s.points) for s in recommendation.splits]
            columns["95% prediction interval"] = [
                "–" if s.low is None or s.high is None else f"{points(s.low)} to {points(s.high)}"
                for s in recommendation.splits
            ]
        tables.show(columns, alt="Difference when the same number of queries is written for fewer documents")
        n = {"TREC-DL": 2, "BEIR": 14, "BRIGHT": 12, "Multi-hop": 4}[first.group]
        st.caption(
            "Difference in NDCG@10 points from one query for each document, at the same number of pairs: averages "
            f"printed for {first.group} ({n} datasets)"
            + (", and the regression line through its datasets." if inside else ".")
        )
