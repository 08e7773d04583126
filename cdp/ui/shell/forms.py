"""Widgets made from a configuration's fields, file choices, failed items, and the command that does the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import streamlit as st
from streamlit.typing import UploadedFile

from cdp.base.errors import InputError
from cdp.base.failures import ItemsFailed, Summary
from cdp.base.settings import Config, Setting
from cdp.base.workspace import Workspace
from cdp.services import access, adding, demo
from cdp.services.commands import PROGRAM
from cdp.ui.shell import frame, state, tables
from cdp.ui.shell.tables import cut, label_of, md


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


def button(label: str, *, disabled: bool = False, help: str | None = None, **options: Any) -> bool:
    """``st.button`` for what changes the workspace: disabled, with the reason, on a read-only dashboard."""
    locked = access.read_only()
    return bool(st.button(label, disabled=disabled or locked, help=access.REASON if locked else help, **options))


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
) -> Any:
    """The widget of one field; its value. ``value`` replaces the field's default as the first value."""
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
    typed = st.text_input(title, value=first or "", key=widget_key, help=about, persist_state="session")
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


# Commands whose second word is an id or a text.
ONE_WORD = ("train", "evaluate", "metrics", "search", "sweep", "decide")


def command(*lines: str, key: str = "") -> None:
    """The equivalent commands, folded away, to copy. A page shows each kind of command once, or gives it a ``key``.

    They are sent once the fold is opened: the browser's part that colours code takes a sixth of a second to start.
    """
    _command([line for line in lines if line], key)


def command_key(lines: list[str]) -> str:
    """The key of these commands' fold, the same for all settings: ``command-queries-import``."""
    words = lines[0].removeprefix(PROGRAM).split() if lines else []
    return "-".join(("command", *words[: 1 if words[:1] and words[0] in ONE_WORD else 2]))


@st.fragment
def _command(lines: list[str], key: str) -> None:
    folded = st.expander(
        "Show the command", icon=":material/terminal:", type="compact", key=key or command_key(lines),
        on_change="rerun",
    )  # fmt: skip
    if folded.open:
        folded.code("\n".join(lines), language="bash", wrap_lines=True)


def _failures(lines: Sequence[dict[str, Any]], n: int, key: str) -> None:
    """A table of the first lines of a ``failures.jsonl``, ``n`` in all; choosing one shows its text and traceback."""
    row = tables.pick_row(
        {
            "Item type": [str(line.get("unit") or "document") for line in lines],
            "ID": [failure_name(line) for line in lines],
            "Reason": [str(line.get("reason") or "") for line in lines],
            "Stage": [str(line.get("stage") or "") for line in lines],
        },
        alt="What failed and why; choose a row to see its text and traceback",
        key=key,
    )
    if n > len(lines):
        st.caption(f"Showing the first {len(lines)} of {n:,}. All are listed in failures.jsonl.")
    if row is None:
        return
    line = lines[row]
    raw = [str(text) for text in line.get("raw") or ()]
    for title, text in (
        ("Input text", str(line.get("text") or "")),
        ("Model answer", "\n\n".join(raw)),
        ("Traceback", str(line.get("traceback") or "")),
    ):
        if text:
            st.caption(title)
            st.code(cut(text, 4000), language=None, wrap_lines=True)


def failed(title: str, load: Callable[[], ItemsFailed | Summary], *, key: str) -> None:
    """A fold with the failed items; the files are read when it is opened."""
    folded = st.expander(title, icon=":material/warning:", on_change="rerun", key=key)
    if folded.open:
        with folded, frame.guarded():
            found = load()
            summary = found if isinstance(found, Summary) else found.summary
            _failures(summary.first, summary.n, f"items_{key}")
            if isinstance(found, ItemsFailed):
                st.caption("The full list, with texts and tracebacks, is in:")
                st.code("\n".join(map(str, found.files)), language=None, wrap_lines=True)


def failure_name(line: dict[str, Any]) -> str:
    """The item's id; of a rejected row its line."""
    return str(line.get("id") or line.get("document_id") or (f"line {line['line']}" if line.get("line") else ""))


MAX_UPLOAD_MB = 500


def remember(message: str, notes: list[str]) -> None:
    """Show this after the page has been drawn again."""
    st.session_state["flash"] = (message, notes)


def flash() -> None:
    """What the last action came to, once."""
    message, notes = st.session_state.pop("flash", ("", []))
    if message:
        body = "\n".join(f"- {md(note)}" for note in notes) or "It is selected below."
        st.success(body, title=md(message), icon=":material/check_circle:")


def source(what: str, key: str, types: list[str]) -> tuple[UploadedFile | None, str]:
    """Ask for a file: an upload (or None) and a path on the server (or "")."""
    way = segments("File location", ["Upload", "Path on this server"], key=f"{key}_way", hidden=True, persistent=False)
    if way == "Upload":
        uploaded = st.file_uploader(what, type=types, max_upload_size=MAX_UPLOAD_MB, key=f"{key}_file")
        return uploaded, ""
    path = st.text_input(
        "File or folder on this server",
        key=f"{key}_path",
        placeholder="data/demo/corpus.jsonl",
        help="For large collections: the server reads the file directly; nothing is sent through the browser.",
    )
    return None, path.strip()


@contextmanager
def opened(workspace: Workspace, uploaded: UploadedFile | None, path: str) -> Iterator[Path]:
    """The chosen file as a path: an upload is written to disk first. InputError if nothing was chosen."""
    if uploaded is not None:
        with adding.received(workspace, [(uploaded.name, uploaded)]) as (target, _):
            yield target
    elif path:
        yield Path(path)
    else:
        raise InputError("No file is selected.", hint="Choose a file to upload, or enter a path on this server.")


@contextmanager
def deletion(label: str, question: str, note: str, key: str) -> Iterator[bool]:
    """A popover that asks before something is deleted; yields whether the button was pressed, errors in one box."""
    with st.popover(label, icon=":material/delete:", type="tertiary"):
        st.markdown(question)
        st.caption(note)
        with frame.guarded():
            yield button("Delete", key=f"delete_{key}", icon=":material/delete:")


def demo_button(workspace: Workspace, key: str) -> None:
    """A button that loads the demo collection and turns to its project."""
    if button(
        "Load the demo collection", icon=":material/science:", key=key,
        help="96 short documents, diverse and paraphrase queries written by an LLM, and a benchmark.",
    ):  # fmt: skip
        with frame.guarded(), st.spinner("Loading the demo collection"):
            remember("The demo collection is loaded.", demo.load(workspace))
            state.turn_to(workspace, "corpus", demo.corpus(workspace))
            st.rerun()
