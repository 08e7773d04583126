"""Notes on conflicts stand beside the numbers that they touch."""

from __future__ import annotations

import pytest

from cdp.principle.tables import read, table


@pytest.mark.slow
def test_the_conflict_over_hotpotqa_stands_at_each_number_that_holds_it() -> None:
    """D01: RetroMAE's HotpotQA above Q/Doc 1 and every average with it, in whichever table it is printed."""
    touched = {"56.91", "55.96", "54.50", "50.61", "56.35", "55.91", "52.49", "38.97", "38.85", "37.91", "36.46"}
    missing = []
    for name in {row["table"] for row in read("results")}:
        shown = table(name)
        for row in shown.rows:
            holds = row["dataset"] == "hotpotqa" or (row["is_average"] and row["group"] in ("BEIR", "Multi-hop"))
            ours = (row["retriever"], row["method"], row["n_docs"]) == ("RetroMAE", "Ours-diverse", 8000)
            noted = 1 in {*row["notes"], *shown.on_all}
            if ours and holds and row["value_printed"] in touched and not noted:
                missing.append((name, row["dataset"], row["group"], row["value_printed"]))
    assert missing == []


def test_other_conflicts_stand_where_they_touch() -> None:
    assert 21 in table("reasonembed").on_all
    assert 21 in {*table("reasonembed_full").on_all}
    plotted = table("fig:diversity_multihop")
    assert {row["ce"] for row in plotted.rows} == {"0.75", "0.70", "0.59", "0.51", "0.10"}
    ours = next(row for row in plotted.rows if row["retriever"] == "RetroMAE" and row["method"] == "Ours-diverse")
    assert (ours["ce"], ours["value_printed"], ours["notes"]) == ("0.10", "58.50", [10])
