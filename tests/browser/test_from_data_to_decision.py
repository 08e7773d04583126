"""From an empty workspace to the sentence of Decide: one upload, at most eight clicks, an endpoint of one's own."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from cdp.services import decide, jobs, queries
from tests.browser.conftest import Looker, Server
from tests.jobs.support import until
from tests.synthesis.server import KEY, MODEL, chat_server, document_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]

N = 60
SYLLABLES = ("bar", "ket", "lom", "nis", "pod", "rul", "sev", "tam")


def word(i: int) -> str:
    """A name that no other document has."""
    return "".join(SYLLABLES[i // 8**place % 8] for place in range(3)).capitalize()


def data(folder: Path) -> Path:
    """Documents with a train and a dev split of judged questions, as a zip in BEIR layout."""
    documents = [
        {"_id": f"d{i}", "title": "", "text": f"{word(i)} is a town by the river {word(i + 100)}. Its mill was built "
         f"in {1600 + i} by the guild of {word(i + 200)}."}
        for i in range(N)
    ]  # fmt: skip
    asked = [{"_id": f"{split}{i}", "text": f"who built the mill of {word(i)}" if split == "dev" else
              f"by which river lies {word(i)}"} for split in ("train", "dev") for i in range(N)]  # fmt: skip
    path = folder / "towns.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("corpus.jsonl", "".join(json.dumps(d) + "\n" for d in documents))
        archive.writestr("queries.jsonl", "".join(json.dumps(q) + "\n" for q in asked))
        for split in ("train", "dev"):
            lines = "".join(f"{split}{i}\td{i}\t1\n" for i in range(N))
            archive.writestr(f"qrels/{split}.tsv", f"query-id\tcorpus-id\tscore\n{lines}")
    return path


def queries_of(prompt: str, m: int) -> str:
    """Paraphrases of one question, or different ones, as the prompt asks."""
    name = document_of(prompt).split()[0]
    one = (
        "builder of {} mill",
        "the builder of {} mill",
        "{} mill builder",
        "{} mill and its builder",
        "mill builder {}",
    )
    several = ("where {} lies", "river at {}", "year of the mill in {}", "guild and town of {}", "is {} a town")
    kinds = one if "different wording" in prompt else several
    return "\n".join(f"{i + 1}. {kinds[i].format(name)}" for i in range(min(m, 5))).removeprefix("1. ")


COUNT_CLICKS = """
window.addEventListener('pointerdown', () => {
  sessionStorage.setItem('clicks', Number(sessionStorage.getItem('clicks') || 0) + 1);
}, {capture: true});
"""


def clicks(page: Page) -> int:
    return int(page.evaluate("Number(sessionStorage.getItem('clicks') || 0)"))


def test_from_data_to_the_sentence_of_decide(
    serve: Callable[..., Server],
    look: Callable[..., Looker],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with chat_server() as endpoint:
        endpoint.answer = queries_of
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        server = serve()
        workspace = server.workspace
        tab = look(server)
        tab.page.add_init_script(COUNT_CLICKS)
        tab.open().press("Add your documents")
        tab.upload(data(tmp_path)).press("Import documents").see("Test it on my data")
        tab.page.get_by_test_id("stMain").get_by_role("link", name="Test it on my data").click()
        tab.idle().see("Start the test")
        tab.page.get_by_test_id("stMain").get_by_text("LLM endpoint", exact=True).click()
        tab.idle()
        for label, value in ((f"Model (default: {'gpt-4o-mini'})", MODEL), ("Minutes", "0.2")):
            box = tab.page.get_by_test_id("stMain").get_by_label(label, exact=True).first
            box.click()  # counted, as a hand on a mouse would need it
            box.fill(value)
            box.press("Tab")
            tab.idle()
        tab.see("towns")
        tab.press("Start the test").see("Test running")
        tab.shot("10-test-running")
        tab.page.goto("about:blank")  # a page that is looked at is drawn every two seconds
        until(
            lambda: any(view.kind == "study" and not view.active for view in jobs.list_jobs(workspace)), "a test", 300
        )
        tab.page.go_back()
        tab.see("Measured on your data", seconds=60)
        tab.shot("11-decide")
        assert clicks(tab.page) <= 8
        (study,) = (view for view in jobs.list_jobs(workspace) if view.kind == "study")
        assert study.state == "finished", study.failure
        assert study.config["benchmarks"].endswith(":dev")
        written = [q for q in queries.list_query_sets(workspace) if q.kind == "synthetic"]
        assert {q.model for q in written} == {MODEL}
        known = decide.of_benchmark(workspace, study.config["corpus"], study.config["benchmarks"].partition(":")[0])
        assert (known.standing, known.study) == ("measured", study.id)
        assert known.measured is not None
        assert (known.measured.report.finished, known.measured.report.planned) == (12, 12)
        tab.see(known.sentence[:40])
        assert "Traceback" not in server.console()
