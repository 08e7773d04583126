"""The choice of what writes the queries, with what an endpoint needs. A key is never stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError
from cdp.services import endpoints
from cdp.services.queries import QuerySet
from cdp.services.synthesis import Writer
from cdp.synthesis.generators import GENERATORS
from cdp.ui.shell import forms, paper_notes
from cdp.ui.shell.text import md


@dataclass(frozen=True)
class Chosen:
    """A generator with its settings (fields of SynthesisConfig).

    ``costs`` is whether using it calls an endpoint, ``slow`` whether it is only asked when a button is pressed.
    """

    name: str
    settings: dict[str, Any]
    api_key: str = ""

    @property
    def costs(self) -> bool:
        return GENERATORS[self.name].endpoint

    @property
    def slow(self) -> bool:
        return GENERATORS[self.name].is_llm


def choose(sets: list[QuerySet], key: str, first: Mapping[str, Any] | None = None) -> Chosen:
    """Ask for a generator. Recorded answers are offered where the corpus has some, and then come first.

    ``first`` are settings to begin with (fields of SynthesisConfig).
    """
    first = first or {}
    offered = {name: GENERATORS[name] for name in GENERATORS.offered}
    has_recorded = any(q.generator == "recorded" for q in sets)
    names = [n for n in offered if n != "recorded" or has_recorded]
    if has_recorded:
        names.sort(key=lambda n: n != "recorded")
    name = forms.segments(
        "Generator",
        {n: offered[n].title for n in names},
        default=first.get("generator"),
        key=f"{key}_generator",
        help="  \n".join(f"**{offered[n].title}**: {md(offered[n].help)}" for n in names),
    )
    if offered[name].local:
        model = _model(name, key, first)
        paper_notes.beside("generators")
        return Chosen(name, {"model": model})
    if not offered[name].endpoint:
        return Chosen(name, {})
    with st.grid(3, min_column_width=220):
        begin = first.get("base_url") or endpoints.configured()
        base_url = forms.widget(SynthesisConfig, "base_url", key=key, label="Base URL", value=begin)
        model = _model(name, key, first)
        api_key = st.text_input(
            "API key",
            type="password",
            key=f"{key}_api_key",
            help="Used for this session's requests and passed to the jobs you start; never written to disk. If "
            "empty, the server's own key is used when it belongs to this URL, otherwise none.",
            placeholder="server's own key" if _own_key(str(base_url)) else "none",
        )
    return Chosen(name, {"base_url": base_url, "model": model}, api_key)


FORMS = ("trial", "generate", "preview")


def chosen() -> Writer | None:
    """The LLM that was chosen in a form of this session; None where each was left at what it began with."""
    for key in FORMS:
        settings = {name: st.session_state.get(f"{key}_{name}") for name in ("generator", "model")}
        if settings["generator"] in GENERATORS and GENERATORS[settings["generator"]].is_llm:
            return Writer.of(settings)
    return None


CARRIED = ("generator", "base_url", "model")


def carry(source: str, target: str) -> None:
    """What was chosen in one form stands in the other, each time that it is chosen anew there."""
    now = {name: st.session_state.get(f"{source}_{name}") for name in CARRIED}
    if not now["generator"] or now == st.session_state.get(f"carried_{target}"):
        return
    st.session_state[f"carried_{target}"] = now
    for name, value in now.items():
        if value is not None:
            st.session_state[f"{target}_{name}"] = value


def _own_key(base_url: str) -> bool:
    try:
        return bool(endpoints.server_key(base_url))
    except CdpError:  # no address yet; whoever asks is told
        return False


def _model(generator: str, key: str, first: Mapping[str, Any]) -> str:
    """The model's name; the label says which one an empty field means."""
    label = f"Model (default: {GENERATORS[generator].model})"
    return str(forms.widget(SynthesisConfig, "model", key=key, label=label, value=first.get("model")))
