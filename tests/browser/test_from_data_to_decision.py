"""From an empty workspace to the answer of Decide: one upload and four clicks."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cdp.services import complexity, decide, jobs
from tests.browser.conftest import Looker, Server
from tests.jobs.support import until

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


# The answer itself takes 18 trainings; tests/browser/test_answer_is_followed.py begins with it.
@pytest.mark.parametrize("to_the_answer", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_from_data_to_the_answer(
    to_the_answer: bool, serve: Callable[..., Server], look: Callable[..., Looker], tmp_path: Path
) -> None:
    server = serve()
    workspace = server.workspace
    tab = look(server)
    tab.open().press("Add your documents")
    tab.upload(data(tmp_path)).press("Import documents").see("Test it on my data")
    tab.press("Test it on my data", role="link").see("Start the test")
    tab.see("towns")
    tab.press("Start the test").see("Test running")
    assert tab.presses == 4
    tab.shot("10-test-running")
    if not to_the_answer:
        (running,) = (view for view in jobs.list_jobs(workspace) if view.kind == "study")
        jobs.stop(workspace, running.id)
        until(lambda: not jobs.show(workspace, running.id).active, "a stopped test", 60)
        return
    tab.page.goto("about:blank")  # a page that is looked at is drawn every two seconds
    until(lambda: any(view.kind == "study" and not view.active for view in jobs.list_jobs(workspace)), "a test", 300)
    tab.page.go_back()
    (study,) = (view for view in jobs.list_jobs(workspace) if view.kind == "study")
    assert study.state == "finished", study.failure
    target = complexity.profile_benchmark(workspace, "towns")
    known = decide.decide(workspace, corpus=study.config["corpus"], target=target)
    assert known.basis is not None
    assert (known.basis.study, known.basis.dev_chosen, known.basis.equal_steps) == (study.id, True, True)
    assert (known.basis.finished, known.seeds) == (known.basis.planned, 3)
    assert known.basis.elsewhere == ""
    tab.see(known.headline[:30], seconds=60)
    tab.shot("11-decide")
    assert tab.presses == 4
    assert "Traceback" not in server.console()
