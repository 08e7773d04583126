"""A selection is held by the thing's id, whatever its label says by now."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from cdp.ui.shell import state

    st.session_state["drawn"] = age = st.session_state.get("drawn", 0) + 1
    if age == 2:  # as Streamlit does where the browser answers with a label that has aged since it was drawn
        st.session_state["choose_job"] = "two (1 min ago)"
        state._chosen("job", "choose_job")
    if age == 3:
        st.session_state["choose_job"] = "a label that nobody drew"
        state._chosen("job", "choose_job")
    state.begin()
    chosen = state.choose("Job", {"job-1": f"one ({age} min ago)", "job-2": f"two ({age} min ago)"}, "job")
    st.text(chosen or "nothing")


@pytest.mark.slow
def test_a_label_that_has_aged_still_names_its_thing_and_stays_out_of_the_address() -> None:
    at = AppTest.from_function(page).run()
    assert at.text[0].value == "job-1"
    for _ in range(2):
        at.run()
        assert not at.warning
        assert at.text[0].value == "job-2"
        assert at.query_params["job"] in ("job-2", ["job-2"])


def several() -> None:
    import streamlit as st

    from cdp.ui.shell import state

    state.begin()
    chosen = state.choose_many("Evaluate on", {"a": "A", "b": "B"}, "on", what="benchmark")
    st.text(" ".join(chosen))


@pytest.mark.slow
def test_what_a_link_names_in_vain_is_told_where_several_are_chosen() -> None:
    at = AppTest.from_function(several)
    at.query_params["on"] = ["b", "gone", "<b>"]
    at.run()
    assert at.text[0].value == "b"
    told = at.warning[0].value.replace("\\", "")
    assert told == "The link names the benchmark gone, <b>, which are not in this workspace."
