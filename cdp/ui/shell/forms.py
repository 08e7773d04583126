"""Widgets made from a configuration's fields: what a setting means is written once, in ``cdp.base.config``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import streamlit as st

from cdp.base.settings import Config, Setting
from cdp.ui.shell.text import label_of, md


class Preset(Protocol):
    """What a setting becomes when it is left empty, and why."""

    @property
    def value(self) -> Any: ...
    @property
    def reason(self) -> str: ...


def segments(
    label: str,
    options: Mapping[Any, str] | Sequence[Any],
    *,
    key: str,
    default: Any = None,
    hidden: bool = False,
    persistent: bool = True,
    **more: Any,
) -> Any:
    """One of a few options side by side (with titles, if a mapping), the first unless ``default`` says another.

    ``hidden`` leaves the label to screen readers; ``persistent`` holds the choice for the session.
    """
    titles = options if isinstance(options, Mapping) else {option: str(option) for option in options}
    first = default if default in titles else next(iter(titles))
    stale = st.session_state.get(key, first) not in titles
    if stale:
        st.session_state[key] = first
    chosen = st.segmented_control(
        label, list(titles), format_func=lambda option: titles.get(option, str(option)), required=True, key=key,
        default=None if stale else first, persist_state="session" if persistent else None, wrap=True,
        label_visibility="collapsed" if hidden else "visible", **more,
    )  # fmt: skip
    return chosen if chosen in titles else first


def download(label: str, data: Any, file_name: str, *, key: str, **more: Any) -> None:
    """A button that hands out a file (its bytes, its text, or a function that makes them) and draws nothing anew."""
    st.download_button(label, data, file_name=file_name, icon=":material/download:", on_click="ignore", key=key, **more)


def fields(
    kind: type[Config],
    *,
    key: str,
    leave_out: Collection[str] = (),
    values: Mapping[str, Any] | None = None,
    presets: Mapping[str, Preset] | None = None,
    columns: int = 2,
) -> dict[str, Any]:
    """Draw a widget for each field and return what was set: only values that differ from the field's default.

    ``values`` replace the defaults as the widgets' first values; ``presets`` say what an empty setting becomes.
    Advanced fields stand in an expander. ``key`` begins the widgets' keys; their values outlive a change of page.
    """
    chosen: dict[str, Any] = {}
    wanted = [setting for setting in kind.settings().values() if setting.name not in leave_out]
    plain = [setting for setting in wanted if not setting.advanced]
    folded = [setting for setting in wanted if setting.advanced]
    _draw(kind, plain, chosen, key, values or {}, presets or {}, columns)
    if folded:
        with st.expander("More settings", icon=":material/tune:"):
            _draw(kind, folded, chosen, key, values or {}, presets or {}, columns)
    return chosen


def _draw(
    kind: type[Config],
    wanted: list[Setting],
    chosen: dict[str, Any],
    key: str,
    values: Mapping[str, Any],
    presets: Mapping[str, Preset],
    columns: int,
) -> None:
    if not wanted:
        return
    with st.grid(columns, min_column_width=230):
        for setting in wanted:
            name = setting.name
            value = widget(kind, name, key=key, value=values.get(name), preset=presets.get(name))
            if value != (None if setting.required else setting.default):
                chosen[name] = value


def widget(
    kind: type[Config],
    name: str,
    *,
    key: str,
    value: Any = None,
    preset: Preset | None = None,
    label: str = "",
    placeholder: str = "",
    offered: Sequence[str] = (),
) -> Any:
    """The widget of one field; its value. ``value`` replaces the field's default as the first value; ``placeholder``
    is what stands in an empty text field; of a text that may be any, the ``offered`` ones need not be typed."""
    setting = kind.settings()[name]
    default = None if setting.required else setting.default
    first = default if value is None else value
    title = label or label_of(name)
    if setting.unit and not label and setting.unit not in title.lower():
        title += f" ({setting.unit})"
    about = help_text(setting.help if preset else setting.about, preset)
    widget_key = f"{key}_{name}"
    if setting.choices:
        return _choice(title, tuple(setting.choices), first, widget_key, about)
    if setting.kind is bool and setting.optional:
        return _yes_or_no(title, first, widget_key, about)
    if setting.kind is bool:
        return st.checkbox(title, value=bool(first), key=widget_key, help=about, persist_state="session")
    if setting.kind in (int, float):
        return _number(title, setting, first, widget_key, about, preset)
    if offered:
        known = list(dict.fromkeys([first, *offered] if first else offered))
        named = st.selectbox(
            title, known, key=widget_key, help=about, accept_new_options=True, persist_state="session"
        )  # fmt: skip
        return named or ""
    typed = st.text_input(
        title, value=first or "", key=widget_key, help=about, placeholder=placeholder or None, persist_state="session"
    )
    return (typed or None) if setting.optional else (typed or "")


def help_text(text: str, preset: Preset | None) -> str:
    """A field's help, with what stands for an empty value."""
    if preset is None:
        return md(text)
    reason = f" ({md(preset.reason.rstrip('.'))})" if preset.reason else ""
    value = "not set" if preset.value is None else f"**{md(preset.value)}**"
    return f"{md(text)} If empty: {value}{reason}."


def _choice(title: str, choices: Sequence[str], first: Any, key: str, about: str) -> str:
    index = choices.index(first) if first in choices else 0
    return st.selectbox(title, choices, index=index, key=key, help=about, persist_state="session") or choices[0]


def _yes_or_no(title: str, first: bool | None, key: str, about: str) -> bool | None:
    """Yes, no, or left to what stands for an empty value."""
    answers = {True: "yes", False: "no"}
    index = None if first is None else list(answers).index(first)
    return st.selectbox(
        title, list(answers), index=index, format_func=lambda value: answers[value], placeholder="retriever's default",
        key=key, help=about, persist_state="session",
    )  # fmt: skip


def _number(title: str, setting: Setting, first: Any, key: str, about: str, preset: Preset | None) -> Any:
    low, high = setting.minimum, setting.maximum
    placeholder = _placeholder(key, preset) if setting.optional else None
    if setting.kind is int:
        return st.number_input(
            title,
            min_value=None if low is None else int(low),
            max_value=None if high is None else int(high),
            value=None if first is None else int(first),
            step=1,
            key=key,
            help=about,
            placeholder=placeholder,
            persist_state="session",
        )
    return st.number_input(
        title,
        min_value=None if low is None else float(low),
        max_value=None if high is None else float(high),
        value=None if first is None else float(first),
        step=_step(first if first is not None else (preset.value if preset else None)),
        format="%g",
        key=key,
        help=about,
        placeholder=placeholder,
        persist_state="session",
    )


def _placeholder(key: str, preset: Preset | None) -> str:
    """What stands in an empty field: the preset's value, "all" or "none" for a limit, else "automatic"."""
    if preset is not None and preset.value is not None:
        return f"{preset.value:g}" if isinstance(preset.value, float) else str(preset.value)
    if key.endswith(("_budget", "_lora_rank", "_mini_batch", "_patience")):
        return "none"
    if key.endswith(("_round_trip_rank", "_at_least", "_rank_above", "_from", "_to")):
        return "any"
    if key.endswith(("_memory_gb", "_dollars_per_hour")):
        return "not counted"
    return "all" if key.endswith(("_limit", "_max_documents", "_per_doc")) else "automatic"


def _step(value: Any) -> float:
    """A step that moves the value by about a tenth."""
    if not isinstance(value, (int, float)) or value == 0:
        return 0.1
    return float(f"1e{len(str(int(abs(value)))) - 2}") if abs(value) >= 1 else float(f"{abs(value) / 10:.0e}")
