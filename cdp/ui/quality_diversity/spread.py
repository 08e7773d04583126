"""How far Self-BLEU can be trusted: its spread over documents, and what another tokenisation makes of it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import metrics
from cdp.services.queries import QuerySet
from cdp.ui.shell import tables
from cdp.ui.shell.tables import md

TITLES = {"marks": "Hyphenated words split (default)", "hyphens": "Hyphenated words kept whole", "words": "Words only"}


def show(workspace: Workspace, picked: Sequence[QuerySet]) -> None:
    """Self-BLEU of each set under each tokenisation, at the Q/Doc that all sets have."""
    depth = min((q.per_doc for q in picked), default=0)
    set_spreads = [(q, metrics.spread(workspace, q.id, per_doc=depth)) for q in picked] if depth > 1 else []
    rows = [(q, s) for q, spreads in set_spreads for s in spreads]
    if not rows:
        return
    if metrics.order_turns([spreads for _, spreads in set_spreads]):
        st.info(
            "The order of these sets by Self-BLEU depends on the tokenisation, so it decides nothing here. Use "
            "embedding diversity or the paraphrase ratio instead (Measure with models).",
            icon=":material/swap_vert:",
        )
    with st.expander("Self-BLEU by tokenisation and its spread over documents", icon=":material/scatter_plot:"):
        tables.show(
            {
                "Query set": [q.name for q, _ in rows],
                "Tokenisation": [TITLES[s.tokenisation] for _, s in rows],
                "Self-BLEU": [f"{s.mean:.3f}  [{s.interval[0]:.3f}, {s.interval[1]:.3f}]" for _, s in rows],
                "SD over documents": [f"{s.sd:.3f}" for _, s in rows],
                "Middle 50%": [f"{s.quartiles[0]:.3f} to {s.quartiles[1]:.3f}" for _, s in rows],
                "Documents": [s.n_documents for _, s in rows],
            },
            alt="Self-BLEU of each query set under each tokenisation, with its spread over documents",
        )
        lines = "\n".join(
            f"- {TITLES[s.tokenisation]}: {md(s.about)}."
            for s in next(spreads for _, spreads in set_spreads if spreads)
        )
        st.markdown(lines)
        st.caption(
            f"At {depth} queries per document, over a sample of at most {metrics.DOCUMENTS} documents. The "
            "paper does not say how it tokenized queries."
        )
