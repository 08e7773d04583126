"""From an empty workspace to the answer of Decide: one upload and four clicks. The answer fits the screen, and three
clicks lead from it to the training that it names, compared. A folder of PDFs, one with a password, becomes passages."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from cdp.base.config import EvaluationConfig
from cdp.base.workspace import Workspace, write_json
from cdp.corpus import iter_documents
from cdp.jobs.records import load_spec
from cdp.results import board
from cdp.services import corpora, decide, jobs, studies
from cdp.studies import target_queries
from tests.browser.conftest import Looker, Server, serve_many
from tests.corpus.test_office_files import pdf, scanned
from tests.jobs.support import until
from tests.services.test_decide import diverse_helps, run_study, sets_of, tales
from tests.support import ONLY_STATIC_IS_FAST

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHONE = {"width": 390, "height": 844}
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """On a workspace that is empty for the first test."""
    yield from serve_many(tmp_path_factory.mktemp("data"))


# The answer itself takes 18 trainings; the next test begins with it.
@pytest.mark.parametrize("to_the_answer", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_from_data_to_the_answer(
    to_the_answer: bool, server: Server, look: Callable[..., Looker], tmp_path: Path
) -> None:
    workspace = server.workspace
    tab = look(server)
    tab.open().menu("Documents")
    tab.upload(data(tmp_path)).press("Import documents").see("Test it on my data")
    write_json(workspace.root / studies.SPEEDS, ONLY_STATIC_IS_FAST)  # to measure them takes ten seconds
    tab.press("Test it on my data", role="link").see("Start the test")
    tab.see("towns")
    tab.press("Start the test").see("Test running")
    assert tab.presses == 3
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
    target = target_queries.profile_benchmark(workspace, "towns")
    known = decide.decide(workspace, corpus=study.config["corpus"], target=target)
    assert known.basis is not None
    assert (known.basis.study, known.basis.dev_chosen, known.basis.equal_steps) == (study.id, True, True)
    assert (known.basis.finished, known.seeds) == (known.basis.planned, 3)
    assert known.basis.elsewhere == ""
    tab.see(known.headline[:30], seconds=60)
    tab.shot("11-decide")
    assert tab.presses == 3
    assert "Traceback" not in server.console()


def done_here(workspace: Workspace, tab: Looker) -> None:
    """Stop what the page started and do it in this process: each worker of its own loads torch again."""
    started = jobs.list_active(workspace)
    for view in started:
        jobs.stop(workspace, view.id)
    until(lambda: not jobs.list_active(workspace), "stopped jobs", 60)
    tab.see("stopped").idle()  # a page of a running job is drawn every two seconds
    for view in sorted(started, key=lambda view: load_spec(workspace, view.id).sequence):
        if jobs.show(workspace, view.id).state != "finished":
            jobs.resume(workspace, view.id)
        assert jobs.show(workspace, view.id).state == "finished", view.id
    tab.menu("Jobs")


def height(page: Page) -> int:
    return int(page.get_by_test_id("stMain").evaluate("main => main.scrollHeight"))


def test_the_answer_fits_and_is_followed(
    server: Server,
    look: Callable[..., Looker],
    tmp_path: Path,
    jobs_here: None,
) -> None:
    workspace = server.workspace
    task = tales(workspace, tmp_path)
    run_study(workspace, sets_of(task), diverse_helps)
    untrained = EvaluationConfig.from_dict({"retriever": "static-minilm", "benchmark": "tales", "split": "dev"})
    jobs.start(workspace, "evaluation", untrained)  # here: the server's jobs are processes of their own
    tab = look(server, width=1440)
    tab.open(f"decide?corpus={task['corpus']}&target_benchmark=tales").see("Write 5 different queries per document")
    assert height(tab.page) <= 2 * 900
    tab.shot("12-answer")
    tab.page.set_viewport_size(PHONE)
    tab.idle()
    box = tab.page.locator(".st-key-decision h2").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= PHONE["height"]
    tab.shot("13-answer-on-a-phone")
    tab.page.set_viewport_size({"width": 1440, "height": 900})
    tab.presses = 0
    tab.press("Train this").see("Start training")
    main = tab.page.get_by_test_id("stMain")
    expect(main.get_by_label("Q/Doc", exact=True).first).to_have_value("5")  # drawn empty, filled a moment later
    assert f"query_set={task['diverse']}" in tab.page.url
    assert "retriever=static-minilm" in tab.page.url
    tab.press("Start training")
    tab.page.get_by_role("heading", level=1, name="Jobs").wait_for(timeout=60_000)  # the jobs are submitted
    tab.idle()
    done_here(workspace, tab)
    tab.see("Compare results")
    tab.press("Compare results").see("Paired t-test over", seconds=60)
    assert tab.presses == 3
    (trained,) = jobs.list_jobs(workspace, ["training"])
    assert f"run={trained.id}" in tab.page.url
    rows = {row.kind for row in board.list_rows(workspace, board.list_evaluations(workspace))}
    assert rows >= {board.TRAINING, board.UNTRAINED, board.BM25}
    tab.shot("14-compared")


def test_from_a_folder_of_pdfs_to_decide(server: Server, look: Callable[..., Looker], tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    pdf(folder / "report.pdf")
    scanned(folder / "scan.pdf")
    pdf(folder / "secret.pdf", password="geheim")
    tab = look(server)
    tab.open("documents").page.get_by_text("Add another corpus").click()
    tab.idle().press("Folder", role="radio")
    box = tab.page.get_by_test_id("stMain").get_by_test_id("stFileUploader").locator("input[type=file]")
    box.set_input_files(folder)
    tab.idle().see("Passages").see("Words of a passage")
    tab.see("Protected by a password: secret.pdf").type("Password of PDFs", "falsch").see("does not open secret.pdf")
    # Tab moves to the field's own button; what was typed must not be lost.
    tab.type("Password of PDFs", "geheim").page.get_by_text("does not open").wait_for(state="hidden")
    tab.press("Import documents").see("1 of 3 files could not be read").see("run OCR first")
    [corpus] = (corpus for corpus in corpora.list_corpora(server.workspace) if corpus.name == "reports")
    assert (corpus.n_files, corpus.n_files_failed, corpus.unit) == (2, 1, "passage")
    ids = {document.id.split("#")[0] for document in iter_documents(server.workspace, corpus.id)}
    assert ids == {"report.pdf", "secret.pdf"}
    tab.menu("Decide").see("reports")
