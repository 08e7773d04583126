"""Complexity with a budget: so many queries in all are spread over documents, in the advice and in the splits."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from tests.pages.conftest import Open


def test_a_budget_is_spread_over_documents(open_page: Open, filled: Workspace) -> None:
    at = open_page("decide", target_benchmark="demo")
    said = " ".join(m.value for m in at.markdown)
    assert "10,000 queries" not in said
    assert not any("Documents" in d.value.columns and "LLM requests" in d.value.columns for d in at.dataframe)

    at.number_input(key="target_budget").set_value(10_000).run()
    assert not at.exception
    assert "10,000 queries" in " ".join(m.value for m in at.markdown)
    (splits,) = [d.value for d in at.dataframe if "LLM requests" in d.value.columns]
    assert list(splits["Documents"]) == [10_000 // per_doc for per_doc in splits["Q/Doc"]]
    at.session_state["command-cw-recommend"] = True
    at.run()
    assert "--budget 10000" in " ".join(code.value for code in at.code)
