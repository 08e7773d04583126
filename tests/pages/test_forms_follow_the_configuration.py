"""Every field of a configuration gets a widget that knows its range, choices and help; only changes are returned."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from cdp.base.config import MetricsConfig, SynthesisConfig, TrainingConfig
from cdp.base.settings import Config
from cdp.ui.shell.tables import JOINER


def form() -> None:
    import streamlit as st

    import cdp.base.config
    from cdp.ui.shell import forms

    kind = getattr(cdp.base.config, st.session_state["kind"])
    st.session_state["chosen"] = forms.fields(kind, key="f")


def drawn(kind: type[Config]) -> AppTest:
    at = AppTest.from_function(form, default_timeout=30)
    at.session_state["kind"] = kind.__name__
    at.run()
    assert not at.exception, at.exception[0].message
    return at


@pytest.mark.parametrize("kind", [SynthesisConfig, MetricsConfig, TrainingConfig])
def test_each_field_has_a_widget_with_its_help(kind: type[Config]) -> None:
    at = drawn(kind)
    for name, setting in kind.settings().items():
        widget = at.get_by_key(f"f_{name}")
        assert widget.help.replace("\\", "").replace(JOINER, "") == setting.about


@pytest.mark.parametrize("kind", [SynthesisConfig, MetricsConfig, TrainingConfig])
def test_an_untouched_form_changes_nothing(kind: type[Config]) -> None:
    chosen = drawn(kind).session_state["chosen"]
    required = {name for name, setting in kind.settings().items() if setting.required}
    assert {key for key in chosen if key not in required} == set()


def test_a_changed_field_is_returned_and_accepted() -> None:
    at = drawn(TrainingConfig)
    at.number_input(key="f_learning_rate").set_value(0.003)
    at.number_input(key="f_epochs").set_value(2)
    at.selectbox(key="f_weighting").select("cw").run()
    chosen = at.session_state["chosen"]
    config = TrainingConfig.from_dict({**chosen, "query_set": "q"})
    assert (config.learning_rate, config.loop.epochs, config.weighting) == (0.003, 2, "cw")


def test_a_yes_or_no_that_may_stay_open_has_three_answers() -> None:
    """Left open it is what the preset says; "no" is an answer of its own."""
    at = drawn(TrainingConfig)
    box = at.selectbox(key="f_gradient_checkpointing")
    assert (box.value, box.options) == (None, ["yes", "no"])
    for answer in (False, True):
        box.select(answer).run()
        chosen = at.session_state["chosen"]
        assert chosen["gradient_checkpointing"] is answer


def test_ranges_come_from_the_configuration() -> None:
    box = drawn(SynthesisConfig).number_input(key="f_per_doc")
    assert (box.min, box.max, box.value) == (1, 20, 5)
