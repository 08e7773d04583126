"""Quality, diversity and complexity of queries at the edge: a defined answer, or one clear sentence."""

from __future__ import annotations

import json
import shutil

import pytest
from streamlit.testing.v1 import AppTest

from cdp.base.workspace import Workspace
from cdp.corpus import looking
from cdp.services import corpora, queries
from tests.pages.conftest import Open
from tests.pages.test_every_page_in_every_state import words

LONG = " ".join(f"word{'abcdefghij'[i % 10]}{'klmnopqrst'[i // 10 % 10]}{'uvwxyz'[i % 6]}" for i in range(10_000))
SETS: dict[str, list[list[str]]] = {
    "one query each": [["what is rust"], ["how do tides work"]],
    "identical": [["what is rust"] * 4, ["how do tides work"] * 3],
    "emoji": [["🙂🙂", "🙂 🌊", "👩‍👩‍👧"], ["🌊", "🙂"]],
    "mixed scripts": [["what is 鉄 rust", "что такое rust", "ما هو rust"], ["潮汐 how", "潮 tides"]],
    "very long": [[LONG, "what is rust"], ["how do tides work", "tides"]],
    "some empty": [[], ["what is rust", "how does iron rust"]],
    "alike on one": [["what is rust", "what is rust made of"], ["how do tides work", "why the moon pulls"]],
    "alike on the other": [["what is rust", "iron decay causes"], ["how do tides work", "how do tides work here"]],
}


def imported(workspace: Workspace, name: str, *, first: int = 0) -> str:
    """A query set for two documents of the demo, from the ``first``; its id."""
    corpus = corpora.list_corpora(workspace)[0].id
    documents = [d.id for d in looking.page(workspace, corpus, first, 2)]
    path = workspace.root.parent / "queries.jsonl"
    rows = [{"document_id": d, "queries": q} for d, q in zip(documents, SETS[name], strict=True) if q]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(lines, encoding="utf-8")
    query_set = queries.import_file(workspace, path, corpus, name=name).query_set.id
    # An import leaves repeated queries out; a set that came to the workspace otherwise may hold them.
    (workspace.query_set(query_set) / "queries.jsonl").write_text(lines, encoding="utf-8")
    shutil.rmtree(workspace.query_set(query_set) / "measures")
    return query_set


def table_of(at: AppTest, column: str) -> list[object]:
    return next(list(d.value[column]) for d in at.dataframe if column in d.value.columns)


@pytest.mark.parametrize("name", ["one query each", "identical", "mixed scripts", "very long", "some empty"])
def test_both_pages_are_drawn_for(name: str, open_page: Open, filled: Workspace) -> None:
    query_set = imported(filled, name)
    at = open_page("queries/quality", sets=query_set)
    assert not at.error
    (bleu,) = table_of(at, "Self-BLEU ↓")
    if name == "one query each":
        assert bleu == "–"
        assert "at least two" in at.info[0].value
    elif name == "identical":
        assert float(str(bleu).split()[0]) > 0.3
    else:
        assert 0.0 <= float(str(bleu).split()[0]) <= 1.0


def test_no_set_is_called_the_most_diverse_where_the_documents_do_not_tell_them_apart(
    open_page: Open, filled: Workspace
) -> None:
    sets = [imported(filled, name) for name in ("alike on one", "alike on the other")]
    at = open_page("queries/quality", sets=sets)
    assert not at.exception
    said = words(at)
    assert "None of these sets is clearly the most diverse" in said
    assert "the 2 documents that both have" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LONG, "no evidence for these queries"),
        ("ما سبب المد والجزر في البحار؟\nلماذا يرتفع مستوى البحر كل يوم؟", "Arabic"),
    ],
)
def test_pasted_queries_get_an_answer(text: str, said: str, open_page: Open, workspace: Workspace) -> None:
    at = open_page("decide")
    at.text_area(key="target_text").set_value(text).run(timeout=60)
    assert not at.exception
    assert not at.error
    languages = [str(v) for d in at.dataframe if "Language" in d.value.columns for v in d.value["Language"]]
    assert said in words(at).replace("\\", "") + " ".join(languages)


def test_queries_without_a_content_word_lead_to_no_advice(open_page: Open, workspace: Workspace) -> None:
    at = open_page("decide")
    at.text_area(key="target_text").set_value("🙂🙂\n🌊").run(timeout=60)
    assert not at.exception
    assert "No query here has a content word when counted as English" in at.error[0].proto.title
    assert "Why:" not in words(at)


def test_the_language_of_pasted_queries_can_be_named(open_page: Open, workspace: Workspace) -> None:
    at = open_page("decide")
    at.text_area(key="target_text").set_value("pourquoi la mer monte\nquel est le plus grand océan du monde").run()
    french = float(at.metric[0].value)
    at.selectbox(key="target_language").select("en").run()
    assert not at.exception
    assert float(at.metric[0].value) > french


def test_sets_without_a_common_document_are_drawn(open_page: Open, filled: Workspace) -> None:
    sets = [imported(filled, "identical"), imported(filled, "emoji", first=2)]
    at = open_page("queries/quality", sets=sets)
    assert not at.error
    assert "is the most diverse" in words(at)
