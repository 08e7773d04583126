"""What users wrote is shown as they wrote it: never read as Markdown, HTML, LaTeX, icons or colours."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from cdp.base.workspace import Workspace, read_json, write_json
from cdp.services import corpora, queries
from cdp.services.corpora import ReadOptions
from cdp.ui.shell import tables
from cdp.ui.shell.frame import PAGES
from tests.pages.conftest import Open
from tests.pages.support import with_results
from tests.services.support import evaluation
from tests.support import REPOSITORY

HOSTILE = (
    "<script>alert(1)</script> **bold** _it_ $x^2$ :red[hot] :material/home: :tada: [a](http://x.y) ![i](http://x.y/z) "
    "`code` # h - l > q ~~s~~ | t | -> www.example.com a@b.example &amp; 1. \\"
)


def unescaped(escaped: str) -> str:
    """What a Markdown reader makes of backslash escapes, without the joiners."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escaped).replace(tables.JOINER, "")


@pytest.mark.parametrize(
    "written", [HOSTILE, "plain words", "", "a\nb", "日本語 ~ é", "\\", "1. x", "- y", "$$\\int$$"]
)
def test_escaping_loses_nothing(written: str) -> None:
    assert unescaped(tables.md(written)) == " ".join(written.split())


@pytest.mark.parametrize("mark", list("\\`*_{}[]()#+-.!|<>~$&:"))
def test_every_mark_is_escaped(mark: str) -> None:
    assert re.search(rf"\\{re.escape(mark)}", tables.md(f"a {mark}b"))


def test_names_that_streamlit_replaces_after_reading_markdown_are_taken_apart() -> None:
    for written in (":material/home:", ":tada:", "a -> b", "a <- b", "a >= b", "www.example.com", "a@b.example"):
        assert tables.JOINER in tables.md(written)


def test_hostile_names_and_documents_on_pages(open_page: Open, workspace: Workspace) -> None:
    source = workspace.root.parent / "hostile.jsonl"
    source.write_text(
        '{"_id": "<b>1</b>", "title": "<b>title</b> **x** $y$", "text": "<script>alert(1)</script> :red[hot]"}\n'
        '{"_id": "2", "title": ":material/home:", "text": "a second document about lighthouses and tides"}\n',
        encoding="utf-8",
    )
    added = corpora.add(workspace, source, name="<i>my</i> **corpus** $z$", options=ReadOptions())
    pairs = workspace.root.parent / "pairs.jsonl"
    pairs.write_text('{"document_id": "2", "queries": ["<b>q</b> **w** $v$", "how do tides work"]}\n', encoding="utf-8")
    queries.import_file(workspace, pairs, added.corpus.id, name="<u>set</u> :red[x]")
    for name in ("documents", "queries", "launch"):
        at = open_page(name)
        marked = [str(e.value) for group in (at.markdown, at.caption, at.error, at.success) for e in group]
        for raw in ("<b>title", "<i>my", "**corpus**", "$z$", "<u>set", ":red[x]", "<script>", "**w**", "$v$"):
            assert not [m for m in marked if raw in m], (name, raw)


def test_numbers_have_one_format() -> None:
    assert tables.points(1.204) == "+1.20"
    assert tables.points(-0.351) == "−0.35"
    assert tables.points(0.001) == "0.00"
    assert tables.p_value(0.0004) == "< 0.001"
    assert tables.count(1, "query", "queries") == "1 query"
    assert tables.count(1234, "query", "queries") == "1,234 queries"
    assert tables.duration(59) == "59 s"
    assert tables.duration(125) == "2 min 5 s"
    assert tables.duration(4800) == "1 h 20 min"
    assert tables.duration(None) == "–"


def test_moments_are_said_as_people_say_them() -> None:
    from datetime import datetime, timedelta

    at = datetime.fromisoformat("2026-05-06T07:08:09+00:00")
    assert tables.moment((at - timedelta(seconds=5)).isoformat(), at=at) == "just now"
    assert tables.moment((at - timedelta(minutes=5)).isoformat(), at=at) == "5 min ago"
    assert tables.moment((at - timedelta(hours=3)).isoformat(), at=at) == "3 h ago"
    assert tables.moment("2026-01-02T03:04:05+00:00", at=at) == "02 Jan 2026, 03:04 UTC"
    assert tables.moment("") == ""


IMAGE = "![i](http://x.y/z) :red[h] <b>t</b>"
# Fields that Streamlit shows as they are; whatever else it is given may be read as Markdown.
PLAIN_FIELDS = {
    "Selectbox": {"options", "raw_value"},
    "MultiSelect": {"options", "raw_values"},
    "ButtonGroup": {"raw_values"},
    "Dataframe": {"alt"},
    "PlotlyChart": {"alt", "spec"},
    "Code": {"code_text"},
    "Text": {"body"},
    "TextArea": {"default", "value"},
    "TextInput": {"default", "value", "placeholder"},
}


def texts_of(message: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text in what the browser is sent for one element, with the way to it."""
    for field, value in message.ListFields():
        for item in value if field.is_repeated else [value]:
            if isinstance(item, str):
                yield (*path, field.name), item
            elif hasattr(item, "ListFields"):
                yield from texts_of(item, (*path, field.name))


def elements_of(node: Any) -> Iterator[Any]:
    for child in getattr(node, "children", {}).values():
        yield child
        yield from elements_of(child)


def loads_an_image(text: str) -> bool:
    return re.search(r"(?<!\\)!\[|(?<!\\)\]\(http://x|(?<!\\):red\[h\]|(?<!\\)<b>", text) is not None


def hostile(workspace: Workspace) -> dict[str, dict[str, str | list[str]]]:
    """A workspace in which every name is an image; what is opened on which page."""
    documents = workspace.root.parent / "image.jsonl"
    lines = [{"_id": f"{i}{IMAGE}", "title": IMAGE, "text": f"{IMAGE} number {i} keeps {i} tides."} for i in range(6)]
    documents.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    corpus = corpora.add(workspace, documents, name=IMAGE).corpus.id
    for n in range(2):
        pairs = workspace.root.parent / f"pairs-{n}.jsonl"
        asked = [[f"{IMAGE} what keeps {i}{n}?", f"how does {IMAGE} move {i}{n}"] for i in range(6)]
        lines = [{"document_id": f"{i}{IMAGE}", "queries": texts} for i, texts in enumerate(asked)]
        pairs.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        queries.import_file(workspace, pairs, corpus, name=f"{IMAGE} {n}")
    sets = [q.id for q in queries.list_query_sets(workspace)]
    with_results(workspace, sets[0])
    for file in workspace.jobs.glob("*/spec.json"):
        write_json(file, {**read_json(file), "name": f"{IMAGE} job"})
    for i in range(2):
        scores = {f"{IMAGE} {k}": (k * 7 + i * 3) % 10 / 10 for k in range(12)}
        evaluation(workspace, f"{IMAGE}{i}", "bench", scores, name=f"{IMAGE} {i}", kind="folder")
    return {
        "queries/quality": {"sets": sets},
        "jobs": {"job": "training-2-other"},
        "compare": {"baseline": f"{IMAGE}0", "retrievers": [f"{IMAGE}1"]},
    }


def test_no_page_sends_a_name_where_markdown_is_read(open_page: Open, workspace: Workspace) -> None:
    """A set's name was once the label of a button, and its image was fetched from wherever it led."""
    opened = hostile(workspace)
    wrong = set()
    for name in (*PAGES, "queries/review", "queries/quality", "evidence/studies"):
        at = open_page(name, **opened.get(name, {}))
        for element in elements_of(at._tree):
            proto = getattr(element, "proto", None)
            kind = type(proto).__name__
            for path, sent in texts_of(proto) if hasattr(proto, "ListFields") else ():
                plain = path[-1] in PLAIN_FIELDS.get(kind, set()) or path[-1] in ("id", "element_id", "key")
                # HTML knows no Markdown: there only the tag matters.
                if "<b>t" in sent if kind == "Html" else not plain and loads_an_image(sent):
                    wrong.add((name, kind, path))
    assert wrong == set()


NAMES = {"name", "title", "retriever", "corpus", "query_set", "benchmark", "place", "model", "message", "hint", "text"}
READS_MARKDOWN = {
    "markdown", "caption", "error", "warning", "info", "success", "toast", "title", "header", "subheader", "badge",
    "metric", "button", "expander", "popover", "checkbox", "toggle", "progress", "radio", "pills", "empty", "link",
}  # fmt: skip


def test_no_page_puts_a_name_into_a_sentence_without_escaping_it() -> None:
    """``f"… {thing.name} …"`` for a place that reads Markdown: the name goes through ``md``."""
    wrong = []
    for path in [*(REPOSITORY / "cdp" / "ui").rglob("*.py"), *(REPOSITORY / "pages").rglob("*.py")]:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            if call.func.attr not in READS_MARKDOWN:
                continue
            for part in [part for argument in call.args for part in ast.walk(argument)]:
                raw = part.value if isinstance(part, ast.FormattedValue) and part.format_spec is None else None
                if isinstance(raw, ast.Attribute) and raw.attr in NAMES and ast.unparse(raw) not in CONSTANT:
                    wrong.append(f"{path.relative_to(REPOSITORY)}:{raw.lineno} {ast.unparse(raw)}")
    assert wrong == []


# Words of our own.
CONSTANT = {"step.title"}
