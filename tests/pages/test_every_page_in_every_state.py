"""Each page in an empty, a half-filled, a full and a broken workspace: it is drawn, and says what to do."""

from __future__ import annotations

import sys

import pytest
from streamlit.testing.v1 import AppTest

from cdp.base.workspace import Workspace
from cdp.services import queries
from cdp.ui.shell.frame import PAGES
from tests.pages.conftest import Open

EMPTY = {
    "home": "Answer my question",
    "documents": "No documents yet",
    "queries": "No documents yet",
    "queries/review": "No query sets yet",
    "benchmarks": "No collection yet",
    "queries/quality": "No query sets yet",
    "decide/complexity": "No target queries yet",
    "launch": "No query sets yet",
    "jobs": "Nothing has run yet",
    "compare": "No results yet",
    "search": "No documents yet",
    "evidence": "crosses zero at CW 7.91",
    "evidence/studies": "No study yet",
}

FULL = {
    "home": "Latest results",
    "documents": "Imported from demo",
    "queries": "queries repeat each other less",
    "queries/review": "pairs are usable",
    "benchmarks": "Your collections",
    "queries/quality": "is the most diverse",
    "decide/complexity": "Published rule: test both kinds of queries",
    "launch": "What will happen",
    "jobs": "tuned otherwise on demo",
    "compare": "tuned on diverse gains",
    "search": "Type a query and press Enter",
    "evidence": "crosses zero at CW 7.91",
    "evidence/studies": "No study yet",
}


@pytest.fixture
def no_model_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing a library that takes seconds fails: the dashboard's process may not load any."""

    class Refuse:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            if name in libraries:
                raise ImportError(f"a page imports {name}")

    libraries = ("torch", "transformers", "sentence_transformers", "sklearn", "nltk")
    for name in libraries:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Refuse, *sys.meta_path])


def words(at: AppTest) -> str:
    """All that stands on the page in Markdown, captions and plain text."""
    return "\n".join(
        str(element.value)
        for group in (at.title, at.header, at.subheader, at.markdown, at.caption, at.text, at.error, at.warning)
        for element in group
    )


# The first look at the evidence computes its regressions: too dear for the quick checks.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "evidence" else name for name in EMPTY]
)
def test_in_an_empty_workspace_a_page_says_what_to_do(name: str, open_page: Open) -> None:
    at = open_page(name)
    assert at.title[0].value == PAGES[name.partition("/")[0]].title
    assert EMPTY[name] in words(at)
    assert not at.error


@pytest.mark.usefixtures("no_model_library")
@pytest.mark.parametrize("name", list(EMPTY))
def test_in_a_full_workspace_a_page_answers_its_question(name: str, open_page: Open, full: Workspace) -> None:
    at = open_page(name)
    assert FULL[name].replace("**", "") in words(at).replace("**", "")
    assert not at.error
    assert not at.warning


@pytest.mark.parametrize("name", ["home", "launch"])
def test_with_the_demo_but_nothing_trained_yet(name: str, open_page: Open, filled: Workspace) -> None:
    assert not open_page(name).error


@pytest.mark.parametrize("name", ["home", "documents"])
def test_a_damaged_workspace_gives_one_calm_box(name: str, open_page: Open, workspace: Workspace) -> None:
    folder = workspace.corpora / "broken-00000000"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{ not json", encoding="utf-8")
    at = open_page(name)
    assert len(at.error) <= 1
    assert "Traceback" not in words(at)


def test_a_link_to_something_that_is_not_here_says_so(open_page: Open, filled: Workspace) -> None:
    at = open_page("documents", corpus="gone-12345678")
    assert "not in this project" in at.warning[0].value
    assert at.selectbox(key="choose_corpus").value == queries.list_query_sets(filled)[0].corpus_id


def test_a_fault_is_one_calm_box_with_its_traceback_folded_away(caplog: pytest.LogCaptureFixture) -> None:
    def page() -> None:
        from cdp.ui.shell import frame

        with frame.unexpected():
            raise ZeroDivisionError("division by zero")

    at = AppTest.from_function(page).run()
    assert at.error[0].proto.title == "Something went wrong on this page"
    assert at.expander[0].exception[0].message == "division by zero"
    assert "ZeroDivisionError" in caplog.text
