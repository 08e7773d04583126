"""A folder of files and a query log, no judgments: a model judges, a person labels by keyboard, Decide tests, and its
answer is corrected. The page starts everything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.benchmarks import judged
from cdp.llm.prices import Price
from cdp.services import jobs
from tests.browser.conftest import Looker, Server
from tests.jobs.support import until
from tests.judging.conftest import ANIMALS
from tests.support import write_prices
from tests.synthesis.server import KEY, MODEL, chat_server, marked, numbered

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUERIES = ("where does the {} sleep", "how does the {} get its food at night")
# The two queries about an animal share its file: eleven are of ten animals, and ten are needed.
LABELLED = 11
JUDGED = "animals-judged"


def files(folder: Path) -> list[Path]:
    """One file about each animal, of two passages."""
    made = []
    for animal in ANIMALS:
        lines = [f"The {animal} was seen in field {n}, and the miller of that year wrote it down." for n in range(11)]
        habits = f"The {animal} sleeps in reeds.", f"The {animal} hunts at night by the water."
        made.append(folder / f"{animal}.txt")
        made[-1].write_text("\n\n".join(" ".join([habit, *lines]) for habit in habits), encoding="utf-8")
    return made


def grade(query: str, text: str) -> int:
    """3 where a text says what is asked, 1 where it is about the animal."""
    about = next(f"The {animal} " for animal in ANIMALS if animal in query)
    habit = "hunts" if "food" in query else "sleeps"
    return 0 if about not in text else 3 if f"{about}{habit}" in text else 1


def lenient(prompt: str, m: int) -> str:
    """The judge: 2 for every third text that is only about the animal. Queries where these are asked for."""
    if "<passage>" not in prompt:
        queries = numbered(prompt, m)
        return queries.replace("What is", "Which is") if "different words" in prompt else queries  # paraphrases
    query, text = marked(prompt, "query"), marked(prompt, "passage")
    found = grade(query, text)
    return json.dumps({"reason": "As it says.", "grade": 2 if found == 1 and len(query + text) % 3 == 0 else found})


def silent_about(silent: str) -> Callable[[str, int], str]:
    """The judge, which has no grade for one query's texts."""

    def answer(prompt: str, m: int) -> str:
        asked = marked(prompt, "query") if "<passage>" in prompt else ""
        return "I cannot say." if asked == silent else lenient(prompt, m)

    return answer


def texts_of(folder: Path) -> dict[str, str]:
    """Texts of the queries and passages by their id."""
    lines = [json.loads(line) for name in ("queries", "corpus") for line in (folder / f"{name}.jsonl").open()]
    return {line["_id"]: line["text"] for line in lines}


def ended(tab: Looker, workspace: Workspace, kind: str, n: int = 1) -> None:
    """Wait until the page's newest job of this kind has ended, and look at its page again."""
    until(lambda: len(jobs.list_jobs(workspace, [kind])) == n, f"a {kind} job", 60)
    tab.page.goto("about:blank")  # a page that is looked at is drawn every two seconds
    until(lambda: not jobs.list_active(workspace), f"the end of {kind}", 400)
    newest = jobs.list_jobs(workspace, [kind])[0]
    assert newest.state == "finished", newest.failure
    tab.page.go_back()


def label(tab: Looker, folder: Path, by_keyboard: int) -> None:
    """Label what is open of the sample's first queries, of some by keyboard, of the others in the file."""
    pool, texts = judged.read_pool(folder), texts_of(folder)
    for at, query in enumerate(judged.sampled(pool)[:LABELLED]):
        known = {(label.query, label.document) for label in judged.read_labels(folder)}
        grades = {
            document: grade(texts[query], texts[document])
            for document in judged.to_label(pool, query)
            if (query, document) not in known
        }
        if at >= by_keyboard:
            judged.add_labels(folder, query, grades, "Ada")
            continue
        for document, given in grades.items():
            done = len(judged.read_labels(folder))
            tab.page.keyboard.press(str(given))
            until(lambda n=done: len(judged.read_labels(folder)) == n + 1, f"{query} {document}", 30)  # type: ignore[misc]
            tab.idle()


# To draw a page after each press takes longer than all else, and trainings of three seeds longer than those of one.
@pytest.mark.soak
@pytest.mark.parametrize("whole", [False, True])
def test_from_files_and_a_log_to_a_corrected_answer(
    serve: Callable[..., Server], look: Callable[..., Looker], tmp_path: Path, whole: bool
) -> None:
    log, by_keyboard = tmp_path / "log.txt", LABELLED if whole else 1
    log.write_text("\n".join(text.format(animal) for text in QUERIES for animal in ANIMALS), encoding="utf-8")
    server = serve()
    workspace, folder = server.workspace, server.workspace.benchmark(JUDGED)
    write_prices(workspace, [Price(MODEL, 1.0, 10.0)], "2026-01-01")
    tab = look(server)
    with chat_server(rates={"500": 0.1, "malformed": 0.02}, seed=3) as chat:
        chat.answer = lenient
        tab.open("documents").upload(*files(tmp_path)).type("Name", "animals").press("Import documents")
        tab.see("animals was added: 24 passages").shot("20-imported")

        tab.press("Have your query log judged", role="link").see("Choose the target queries").upload(log)
        tab.type("Base URL", chat.url).type("Model (default: gpt-4o-mini)", MODEL).type("Depth (documents)", "5")
        # Tab goes on to the button that shows the key; only Enter or another field sends it.
        tab.page.get_by_label("API key", exact=True).first.fill(KEY)
        tab.page.get_by_label("API key", exact=True).first.press("Enter")
        tab.see("at most 360 pairs").see("prices as of 2026-01-01").shot("21-judge")
        assert not chat.bodies, "nothing is sent before the start"
        tab.press("Start judging").see("animals-judged by test-model")
        ended(tab, workspace, "judging")

        tab.press("Label some queries").see("Enter your name")
        tab.type("Your name", "Ada").see("Passage 1 of").shot("22-label")
        label(tab, folder, by_keyboard)
        assert {label.by for label in judged.read_labels(folder)} == {"Ada"}
        tab.page.reload()
        tab.see("11 of 24 queries labelled by people (Ada 11): enough to correct figures")

        tab.press("Test it on my data", role="link").see("16 of 24 judged queries are reported")
        if whole:
            tab.page.get_by_test_id("stMain").get_by_text("LLM endpoint").first.click()
            tab.idle().type("Base URL", chat.url).type("Model (default: gpt-4o-mini)", MODEL)
            tab.page.get_by_label("API key", exact=True).first.fill(KEY)
            tab.page.get_by_label("API key", exact=True).first.press("Enter")
        else:
            tab.page.get_by_test_id("stMain").get_by_text("Template (no LLM)").first.click()
            tab.idle().type("Seeds", "1")
        tab.idle().see(MODEL).shot("23-test")
        chat.answer = silent_about(texts_of(folder)[judged.sampled(judged.read_pool(folder))[0]])
        tab.page.get_by_role("button", name="Start the test").click()
        tab.see("Timing a few steps of training").see("Test running", seconds=240).idle()
        ended(tab, workspace, "study")
        # What the trainings newly found was judged after them, but for one query. People labelled none of it.
        assert [job.name for job in jobs.list_jobs(workspace, ["judging"])] == 2 * [f"{JUDGED} by {MODEL}"]
        tab.see("Judged by a model, 11 queries in part by people").see("queries judged by test-model")
        tab.see("of the first ten documents have no judgment").shot("24-answer")

        tab.press("Judge the missing documents")
        tab.page.get_by_test_id("stPopoverBody").get_by_label("API key", exact=True).fill(KEY)
        chat.answer, chat.rates, asked = lenient, {}, len(chat.bodies)
        tab.confirm("Start judging").see("animals-judged by test-model")
        ended(tab, workspace, "judging", 3)
        assert len(chat.bodies) > asked
        for job in jobs.list_jobs(workspace):
            assert KEY not in "".join(path.read_text() for path in (workspace.jobs / job.id).glob("*.json*"))

    tab.press("Label some queries").see("Enter your name")
    tab.type("Your name", "Ada").see("Passage")
    label(tab, folder, by_keyboard)
    tab.page.reload()
    tab.see("11 of 24 queries labelled by people").see("Corrected by 11 queries of people").shot("25-labelled")
    tab.press("Decide", role="link").see("Judged by a model, 11 queries by people")
    tab.unfold("All limits and comparisons").see("Corrected by 11 queries of people").shot("26-corrected")
    tab.open("compare").see("Corrected by 11 queries of people").see("judged by test-model").shot("27-compare")
    assert "Traceback" not in server.console()
