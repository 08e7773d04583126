"""What users wrote is shown as they wrote it: never read as Markdown, HTML, LaTeX, icons or colours."""

from __future__ import annotations

import re

import pytest

from cdp.services import corpora, queries
from cdp.services.corpora import ReadOptions
from cdp.ui import text
from cdp.workspace import Workspace
from tests.pages.conftest import Open

HOSTILE = (
    "<script>alert(1)</script> **bold** _it_ $x^2$ :red[hot] :material/home: :tada: [a](http://x.y) ![i](http://x.y/z) "
    "`code` # h - l > q ~~s~~ | t | -> www.example.com a@b.example &amp; 1. \\"
)


def unescaped(escaped: str) -> str:
    """What a Markdown reader makes of backslash escapes, without the joiners."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escaped).replace(text.JOINER, "")


@pytest.mark.parametrize(
    "written", [HOSTILE, "plain words", "", "a\nb", "日本語 ~ é", "\\", "1. x", "- y", "$$\\int$$"]
)
def test_escaping_loses_nothing(written: str) -> None:
    assert unescaped(text.md(written)) == " ".join(written.split())


@pytest.mark.parametrize("mark", list("\\`*_{}[]()#+-.!|<>~$&:"))
def test_every_mark_is_escaped(mark: str) -> None:
    assert re.search(rf"\\{re.escape(mark)}", text.md(f"a {mark}b"))


def test_names_that_streamlit_replaces_after_reading_markdown_are_taken_apart() -> None:
    for written in (":material/home:", ":tada:", "a -> b", "a <- b", "a >= b", "www.example.com", "a@b.example"):
        assert text.JOINER in text.md(written)


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
    for name in ("overview", "corpus", "queries", "quality_diversity", "launch"):
        at = open_page(name)
        marked = [str(e.value) for group in (at.markdown, at.caption, at.error, at.success) for e in group]
        for raw in ("<b>title", "<i>my", "**corpus**", "$z$", "<u>set", ":red[x]", "<script>", "**w**", "$v$"):
            assert not [m for m in marked if raw in m], (name, raw)


def test_numbers_have_one_format() -> None:
    assert text.points(1.204) == "+1.20"
    assert text.points(-0.351) == "−0.35"
    assert text.points(0.001) == "0.00"
    assert text.p_value(0.0004) == "< 0.001"
    assert text.count(1, "query", "queries") == "1 query"
    assert text.count(1234, "query", "queries") == "1,234 queries"
    assert text.duration(59) == "59 s"
    assert text.duration(125) == "2 min 5 s"
    assert text.duration(4800) == "1 h 20 min"
    assert text.duration(None) == "–"


def test_moments_are_said_as_people_say_them() -> None:
    from datetime import datetime, timedelta

    at = datetime.fromisoformat("2026-05-06T07:08:09+00:00")
    assert text.moment((at - timedelta(seconds=5)).isoformat(), at=at) == "just now"
    assert text.moment((at - timedelta(minutes=5)).isoformat(), at=at) == "5 min ago"
    assert text.moment((at - timedelta(hours=3)).isoformat(), at=at) == "3 h ago"
    assert text.moment("2026-01-02T03:04:05+00:00", at=at) == "02 Jan 2026, 03:04 UTC"
    assert text.moment("") == ""
