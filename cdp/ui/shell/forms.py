"""The widget of a setting, buttons that read-only disables, upload and path, confirming deletion, downloads, failed
items, "Show the command"."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import streamlit as st
from streamlit.typing import UploadedFile

from cdp.base import permission
from cdp.base.errors import InputError
from cdp.base.failures import FailedItems
from cdp.base.settings import Config, Setting
from cdp.base.workspace import Workspace
from cdp.retrievers.presets import Default
from cdp.services import adding, demo, projects
from cdp.services.commands import PROGRAM
from cdp.ui.shell import frame, state, tables
from cdp.ui.shell.tables import cut, label_of, md

# How long a widget holds its value: for the session, or as long as it is drawn.
PERSIST: dict[bool, Literal["session"] | None] = {True: "session", False: None}


def _titles(options: Mapping[Any, str] | Sequence[Any]) -> Mapping[Any, str]:
    """Options with their titles; an option without one is shown as it is written."""
    if isinstance(options, Mapping):
        return options
    return dict(zip(options, map(str, options), strict=True))


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
    titles = _titles(options)
    first = default if default in titles else next(iter(titles))
    stale = st.session_state.get(key, first) not in titles
    if stale:
        st.session_state[key] = first

    chosen = st.segmented_control(
        label, list(titles), format_func=lambda option: titles.get(option, str(option)), required=True, key=key,
        default=None if stale else first, persist_state=PERSIST[persistent], wrap=True,
        label_visibility="collapsed" if hidden else "visible", **more,
    )  # fmt: skip
    return chosen if chosen in titles else first


def pick(
    label: str,
    options: Mapping[Any, str] | Sequence[Any],
    *,
    key: str,
    first: Any = None,
    placeholder: str = "",
    persistent: bool = True,
    **more: Any,
) -> Any:
    """A select box over options (with titles, if a mapping); with a ``placeholder`` none is chosen at first."""
    titles = _titles(options)
    index: int | None = None if placeholder or not titles else 0
    if first in titles:
        index = list(titles).index(first)

    return st.selectbox(
        label, list(titles), index=index, format_func=lambda option: titles.get(option, str(option)), key=key,
        placeholder=placeholder or None, persist_state=PERSIST[persistent], **more,
    )  # fmt: skip


def button(label: str, *, disabled: bool = False, help: str | None = None, **options: Any) -> bool:
    """``st.button`` for what changes the workspace: disabled, with the reason, on a read-only dashboard."""
    if permission.read_only():
        disabled, help = True, permission.REASON
    return bool(st.button(label, disabled=disabled, help=help, **options))


def secret(label: str, *, key: str, **more: Any) -> str:
    """A field for a key or a password."""
    # Live: such a field does not send what was typed when the focus moves to its own button, as with Tab.
    return st.text_input(label, type="password", key=key, live="500ms", **more) or ""


def download(label: str, data: Any, file_name: str, *, key: str, **more: Any) -> None:
    """A button that hands out a file (its bytes, its text, or a function that makes them) without a rerun."""
    st.download_button(label, data, file_name=file_name, icon=":material/download:", on_click="ignore", key=key, **more)


def fields(
    kind: type[Config],
    *,
    key: str,
    leave_out: Collection[str] = (),
    presets: Mapping[str, Default] | None = None,
    labels: Mapping[str, str] | None = None,
    columns: int = 2,
) -> dict[str, Any]:
    """Draw a widget for each field and return what was set: only values that differ from the field's default.

    ``presets`` say what an empty setting becomes, ``labels`` replace the names of settings.
    Advanced fields stand in an expander. ``key`` begins the widgets' keys; their values outlive a change of page.
    """
    chosen: dict[str, Any] = {}
    presets, labels = presets or {}, labels or {}
    wanted = [setting for setting in kind.settings().values() if setting.name not in leave_out]
    for advanced in (False, True):
        shown = [setting for setting in wanted if setting.advanced == advanced]
        if not shown:
            continue

        folded: AbstractContextManager[Any] = nullcontext()
        if advanced:
            folded = st.expander("More settings", icon=":material/tune:")

        with folded, st.grid(columns, min_column_width=230):
            for setting in shown:
                name = setting.name
                value = widget(kind, name, key=key, preset=presets.get(name), label=labels.get(name, ""))
                if value != setting.untouched:
                    chosen[name] = value

    return chosen


def widget(
    kind: type[Config],
    name: str,
    *,
    key: str,
    value: Any = None,
    preset: Default | None = None,
    label: str = "",
) -> Any:
    """The widget of one field; its value. ``value`` replaces the field's default as the first value."""
    setting = kind.settings()[name]
    first = setting.untouched if value is None else value
    title = label or label_of(name)
    if setting.unit and not label and setting.unit not in title.lower():
        title += f" ({setting.unit})"

    # The reason of the default says nothing where the retriever's own value stands for an empty field.
    about = help_text(setting.about, None)
    if preset is not None:
        about = help_text(setting.help, preset)
    widget_key = f"{key}_{name}"

    if setting.choices and not setting.entries:
        choices = {choice: choice or "automatic" for choice in setting.choices}
        return pick(title, choices, key=widget_key, first=first, help=about)

    if setting.kind is bool and setting.optional:
        answers = {True: "yes", False: "no"}
        return pick(title, answers, key=widget_key, first=first, placeholder="retriever's default", help=about)

    if setting.kind is bool:
        return st.checkbox(title, value=bool(first), key=widget_key, help=about, persist_state="session")
    if setting.kind in (int, float):
        return _number(title, setting, first, widget_key, about, preset)

    typed = st.text_input(title, value=first or "", key=widget_key, help=about, persist_state="session")
    return (typed or None) if setting.optional else (typed or "")


def help_text(text: str, preset: Default | None) -> str:
    """A field's help, with what stands for an empty value."""
    if preset is None:
        return md(text)

    value, reason = "not set", ""
    if preset.value is not None:
        value = f"**{md(preset.value)}**"
    if preset.reason:
        reason = f" ({md(preset.reason.rstrip('.'))})"

    return f"{md(text)} If empty: {value}{reason}."


def _number(title: str, setting: Setting, first: Any, key: str, about: str, preset: Default | None) -> Any:
    def number(value: Any) -> Any:
        return None if value is None else setting.kind(value)

    more: dict[str, Any] = {"step": 1}
    if setting.kind is float:
        like = preset.value if first is None and preset is not None else first
        more = {"step": _step(like), "format": "%g"}
    if setting.optional:
        more["placeholder"] = _placeholder(key, preset)

    return st.number_input(
        title, min_value=number(setting.minimum), max_value=number(setting.maximum), value=number(first), key=key,
        help=about, persist_state="session", **more,
    )  # fmt: skip


# What an empty number means, by the end of the widget's key; "automatic" for all others.
EMPTY = {
    "none": ("_budget", "_lora_rank", "_mini_batch", "_patience", "_spend"),
    "any": ("_round_trip_rank", "_at_least", "_rank_above", "_from", "_to"),
    "not counted": ("_memory_gb", "_dollars_per_hour"),
    "all": ("_limit", "_max_documents", "_per_doc"),
}


def _placeholder(key: str, preset: Default | None) -> str:
    """What stands in an empty field: the preset's value, "all" or "none" for a limit, else "automatic"."""
    if preset is not None and isinstance(preset.value, float):
        return f"{preset.value:g}"
    if preset is not None and preset.value is not None:
        return str(preset.value)

    for word, endings in EMPTY.items():
        if key.endswith(endings):
            return word
    return "automatic"


def _step(value: Any) -> float:
    """A step that moves the value by about a tenth."""
    if not isinstance(value, (int, float)) or value == 0:
        return 0.1
    if abs(value) < 1:
        return float(f"{abs(value) / 10:.0e}")
    return float(f"1e{len(str(int(abs(value)))) - 2}")


# Commands whose second word is an id or a text.
ONE_WORD = ("train", "evaluate", "metrics", "search", "sweep", "decide")


def command(*lines: str, key: str = "") -> None:
    """The equivalent commands, folded away, to copy. A page shows each kind of command once, or gives it a ``key``.

    They are sent once the fold is opened: the browser's part that colours code takes a sixth of a second to start.
    """
    shown = list(filter(None, lines))
    named = "".join(shown[:1]).removeprefix(PROGRAM).split()[:2]
    if named and named[0] in ONE_WORD:
        named = named[:1]
    _command(shown, key or "-".join(("command", *named)))


@st.fragment
def _command(lines: list[str], key: str) -> None:
    folded = st.expander("Show the command", icon=":material/terminal:", type="compact", key=key, on_change="rerun")
    if folded.open:
        folded.code("\n".join(lines), language="bash", wrap_lines=True)


def failed(
    n: int, title: str, load: Callable[[], FailedItems], *, key: str, retry: Callable[[str], None] | None = None
) -> None:
    """A fold with the ``n`` failed items, nothing without any; the files are read when it is opened. ``retry`` draws
    how to try again: all, or the one whose id it gets."""
    if not n:
        return

    folded = st.expander(title, icon=":material/warning:", on_change="rerun", key=key)
    if not folded.open:
        return

    with folded, frame.guarded():
        found = load()
        line = _failures(found, f"items_{key}") or {}
        if retry is not None:
            retry(str(line.get("id") or ""))
        if found.files:
            st.caption("The full list, with texts and tracebacks, is in:")
            st.code("\n".join(map(str, found.files)), language=None, wrap_lines=True)


def _failures(summary: FailedItems, key: str) -> Mapping[str, Any] | None:
    """A table of the first failed items; choosing one shows its text and traceback. Return the chosen one."""
    lines = summary.first
    row = tables.pick_row(
        tables.by_title(map(_failure, lines)),
        alt="What failed and why; choose a row to see its text and traceback",
        key=key,
    )
    if summary.n > len(lines):
        st.caption(f"Showing the first {len(lines)} of {summary.n:,}. All are listed in failures.jsonl.")
    if row is None:
        return None

    line = lines[row]
    for title, text in (
        ("Input text", str(line.get("text") or "")),
        ("Model answer", "\n\n".join(map(str, line.get("raw") or ()))),
        ("Traceback", str(line.get("traceback") or "")),
    ):
        if text:
            st.caption(title)
            st.code(cut(text, 4000), language=None, wrap_lines=True)

    return line


def _failure(line: Mapping[str, Any]) -> dict[str, str]:
    name = line.get("id") or line.get("document_id")
    if not name and line.get("line"):
        name = f"line {line['line']}"  # of a rejected row

    return {
        "Item type": str(line.get("unit") or "document"),
        "ID": str(name or ""),
        "Reason": str(line.get("reason") or ""),
        "Stage": str(line.get("stage") or ""),
    }


MAX_UPLOAD_MB = 500
PATH = "Path on this server"


def remember(message: str, notes: list[str], *, problem: str = "", details: Sequence[str] = ()) -> None:
    """Show this after the page has been drawn again; a ``problem`` stands above it, and nothing is green then."""
    st.session_state["flash"] = (message, notes, problem, details)


def flash() -> str:
    """What the last action came to, once; returns its problem, so that the page below does not tell it again."""
    message, notes, problem, details = st.session_state.pop("flash", ("", [], "", ()))
    if problem:
        st.warning(_listed(details), title=md(problem))
    if message:
        body = _listed(notes) or "It is selected below."
        if problem:
            st.info(body, title=md(message), icon=":material/info:")
        else:
            st.success(body, title=md(message), icon=":material/check_circle:")
    return problem


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {md(text)}" for text in texts)


def source(
    what: str, key: str, types: Sequence[str] | None, *, turn: str = "", help: str = ""
) -> tuple[list[UploadedFile], str]:
    """Ask for a file: (uploads, path on the server). Without ``types`` any files, or a folder, can be chosen."""
    ways = ["Upload", "Folder", PATH]
    if types:
        ways.remove("Folder")

    way = segments("File location", ways, key=f"{key}_way", hidden=True, persistent=False)
    if way == PATH:
        path = st.text_input(
            "File or folder on this server", key=f"{key}_path", placeholder="data/demo",
            help="For large collections: the server reads the file directly; nothing is sent through the browser.",
        )  # fmt: skip
        return [], path.strip()

    many: Any = not types
    suffix = "file"
    if way == "Folder":
        many, suffix = "directory", "folder"

    uploads: Any = st.file_uploader(
        what, type=types, max_upload_size=MAX_UPLOAD_MB, help=help or None, accept_multiple_files=many,
        key=f"{key}_{suffix}{turn}",
    )  # fmt: skip

    if isinstance(uploads, list):
        return uploads, ""
    return list(filter(None, [uploads])), ""


@contextmanager
def opened(
    workspace: Workspace, uploads: Sequence[UploadedFile], path: str, queries_path: str = ""
) -> Iterator[tuple[Path, Path | None]]:
    """(the chosen file or folder, a file of queries beside it); uploads are written to disk. InputError without one."""
    if uploads:
        for upload in uploads:
            upload.seek(0)
        with adding.received(workspace, [(upload.name, upload) for upload in uploads]) as files:
            yield files
    elif path:
        yield Path(path), Path(queries_path) if queries_path else None
    else:
        raise InputError("No file is selected.", hint="Choose a file to upload, or enter a path on this server.")


def deletion(
    label: str, question: str, note: str, delete: Callable[[], object], *, key: str, param: str = "", told: str = ""
) -> None:
    """A popover that asks before something is deleted, with a ``note`` on what stays; ``told`` is shown afterwards.

    ``param`` is the selection that named what is deleted.
    """
    with st.popover(label, icon=":material/delete:", type="tertiary"):
        st.markdown(question)
        if note:
            st.caption(note)

        with frame.guarded():
            if button("Delete", key=f"delete_{key}", icon=":material/delete:"):
                delete()
                if param:
                    state.keep(param, None)
                st.query_params.clear()
                if told:
                    remember(told, [note])
                st.rerun()


def demo_button(workspace: Workspace, key: str) -> None:
    """A button that loads the demo collection and turns to its project."""
    if button(
        "Load the demo collection", icon=":material/science:", key=key,
        help="96 short documents, diverse and paraphrase queries written by an LLM, and a benchmark.",
    ):  # fmt: skip
        with frame.guarded(), st.spinner("Loading the demo collection"):
            remember("The demo collection is loaded.", demo.load(workspace))
            if owner := projects.project_of(workspace, "corpus", demo.corpus(workspace)):
                state.only(state.PROJECT, owner.id)
            st.rerun()
