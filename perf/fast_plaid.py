"""Exact MaxSim against fast-plaid's index, which is approximate: seconds, memory, and how much of the truth it finds.

Vectors as of ``perf.late_interaction_peers``, but 2,000 documents: the index of 10,000 was not done after 280 processor
seconds of finding centroids. fast-plaid looks at the documents near 8 centroids of each token of the query, and scores
up to 4,096 of them from 4 bits a number. Its environment is made by hand, for it needs torch 2.11.0, which brings 3 GB
of CUDA; its index is kept.

    python3.11 -m venv build/interop/fast-plaid
    build/interop/fast-plaid/bin/python -m pip install fast-plaid==1.7.0.2110
    python -m perf fast_plaid
"""

from __future__ import annotations

from perf.late_interaction_peers import Side, beside, given
from perf.timing import Row, of_ratios
from perf.token_peers import K

DOCUMENTS = 2_000


def run() -> list[Row]:
    """Seconds, memory and the share of the best documents that are found."""
    Side("fast-plaid", given(DOCUMENTS)).end()  # makes its index, which takes more memory than a search
    rows, agreed = beside("fast-plaid", documents=DOCUMENTS)

    share = 100 * agreed["fast-plaid"]
    title = f"MaxSim of {DOCUMENTS:,} documents from the disk, the best {K} that are found, fast-plaid"
    made: Row = {"name": title, "ours": 100.0, "peer": share, "unit": "%", "target": 1.0, **of_ratios([100 / share])}

    return [*rows, made]
