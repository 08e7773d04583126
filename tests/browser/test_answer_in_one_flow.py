"""From ``make app`` to filled pages in no action; from a folder, a log and an endpoint to the answer in six clicks,
through a reload, a stop, a resume and a second tab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cdp.base.workspace import write_json
from cdp.services import jobs, studies
from tests.browser.conftest import Looker, Server
from tests.browser.test_judging import QUERIES, grade
from tests.jobs.support import until
from tests.judging.conftest import ANIMALS
from tests.support import ONLY_STATIC_IS_FAST
from tests.synthesis.server import KEY, MODEL, chat_server, document_of, marked

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUNS = "It goes on if you close the page"


def files(folder: Path) -> list[Path]:
    """A short file for each habit of each animal."""
    made = []
    for animal in ANIMALS:
        for habit in (f"The {animal} sleeps in reeds.", f"The {animal} hunts at night by the water."):
            made.append(folder / f"{animal}-{len(made)}.txt")
            made[-1].write_text(f"{habit} It was seen in field {len(made)}.", encoding="utf-8")
    return made


def writes_and_judges(prompt: str, n: int) -> str:
    """Grades for a judge's prompt; else queries that differ between the two methods."""
    if "<passage>" in prompt:
        return f'{{"reason": "As it says.", "grade": {grade(marked(prompt, "query"), marked(prompt, "passage"))}}}'
    about = next(animal for animal in ANIMALS if animal in document_of(prompt))
    word = "where" if "different words" in prompt else "when"
    return "\n".join(f"{'' if i == 1 else f'{i}. '}{word} does the {about} {i}" for i in range(1, n + 1))


def test_the_demo_fills_every_page_that_was_an_empty_lobby(
    serve: Callable[..., Server], look: Callable[..., Looker]
) -> None:
    tab = look(serve(with_demo=True))
    tab.open("compare").see("14 recipes. All trained ones: in-domain, recorded").shot("30-demo-compare")
    tab.open("search").see("a judged query of these documents").see("score").shot("31-demo-search")
    tab.open("jobs").see("Recorded: it ran on another machine").shot("32-demo-jobs")
    tab.open("decide").see("Run it here").shot("33-demo-decide")
    tab.open("").see("Answer my question again").shot("34-demo-home")


@pytest.mark.soak
def test_from_a_folder_a_log_and_an_endpoint_to_the_answer(
    serve: Callable[..., Server], look: Callable[..., Looker], tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    log.write_text("\n".join(text.format(animal) for text in QUERIES for animal in ANIMALS), encoding="utf-8")
    server = serve()
    workspace = server.workspace
    write_json(workspace.root / studies.SPEEDS, ONLY_STATIC_IS_FAST)
    tab = look(server)
    with chat_server() as chat:
        chat.answer = writes_and_judges
        tab.open("").see("Answer my question")
        tab.upload(*files(tmp_path)).press("Add documents")
        tab.see("1 · Documents:").see("Who writes and judges")
        tab.upload(log)
        tab.type("Base URL", chat.url).type("Model (default: gpt-4o-mini)", MODEL).type("API key", KEY)
        tab.unfold("Limits and retriever").type("Seeds", "1")
        tab.see("It takes about").see("are sent to").shot("35-flow")
        assert not chat.bodies, "nothing is sent before the start"
        tab.press("Answer my question").see(RUNS)
        assert tab.presses + 2 <= 6  # each upload is a click and a choice of files

        second = look(server)
        second.open("").see(RUNS)
        tab.page.reload()
        tab.see(RUNS)
        until(lambda: len(chat.bodies) > 20, "the first grades", 60)
        tab.press("Stop")
        tab.confirm("Stop the job")

        # From here on no tab is reloaded: each notices what the other did.
        tab.see("Nothing is paid for twice", seconds=120)
        second.see("Nothing is paid for twice").shot("36-flow-stopped")
        second.press("Resume").see(RUNS)  # the key was typed once
        tab.see(RUNS)
        tab.page.goto("about:blank")  # a page that is looked at is drawn every two seconds
        (view,) = jobs.list_jobs(workspace)
        ended = jobs.wait(workspace, view.id)
        assert str(ended.state) == "finished", ended.failure

    second.see("judged by a model").shot("37-flow-answer")
    second.page.wait_for_function("() => document.title.startsWith('✓ 1 finished')")
    second.open("decide").see("is kept").shot("38-flow-decide")
    assert "Traceback" not in server.console()
    assert KEY not in "".join(path.read_text("utf-8", "replace") for path in workspace.root.rglob("*.json*"))
