"""Documents and a query log, no judgments: a model judges, a person labels by keyboard, and figures follow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cdp.base.config import EvaluationConfig
from cdp.benchmarks import judged
from cdp.llm.prices import Price, write_prices
from cdp.services import evaluation, jobs
from tests.browser.conftest import Looker, Server
from tests.jobs.support import until
from tests.judging.conftest import ANIMALS, by_animal, passage
from tests.synthesis.server import KEY, MODEL, chat_server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUERIES = 12


# To draw a page after each press takes longer than all else.
@pytest.mark.parametrize("n_by_keyboard", [2, pytest.param(10, marks=pytest.mark.soak)])
def test_from_a_log_to_corrected_figures(
    serve: Callable[..., Server], look: Callable[..., Looker], tmp_path: Path, jobs_here: None, n_by_keyboard: int
) -> None:
    rows = [{"_id": f"{a}-{n}", "text": passage(a, n)} for a in ANIMALS for n in range(3)]
    documents, log = tmp_path / "animals.jsonl", tmp_path / "log.txt"
    documents.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    log.write_text("\n".join(f"where does the {animal} sleep" for animal in ANIMALS), encoding="utf-8")
    server = serve()
    workspace = server.workspace
    write_prices(workspace, [Price(MODEL, 1.0, 10.0)], "2026-01-01")
    tab = look(server)
    with chat_server(rates={"500": 0.1, "malformed": 0.02}, seed=3) as chat:
        chat.answer = by_animal
        tab.open("documents").upload(documents).press("Import documents").see("36")
        tab.open("benchmarks?tab=judge").upload(log)
        tab.type("Base URL", chat.url).type("Model (default: gpt-4o-mini)", MODEL).type("API key", KEY)
        # Tab goes on to the button that shows the key; only Enter or another field sends it.
        tab.page.get_by_label("API key", exact=True).first.press("Enter")
        tab.see("at most 360 pairs").see("prices as of 2026-01-01")
        tab.shot("20-judge")
        assert not chat.bodies, "nothing is sent before the start"
        tab.press("Start judging")
        until(lambda: jobs.list_jobs(workspace), "a job", 30)
        tab.page.goto("about:blank")  # a page that is looked at is drawn every two seconds
        until(lambda: any(v.kind == "judging" and not v.active for v in jobs.list_jobs(workspace)), "judgments", 120)
        (job,) = (view for view in jobs.list_jobs(workspace) if view.kind == "judging")
        assert job.state == "finished", job.failure
        assert KEY not in "".join(p.read_text() for p in (workspace.jobs / job.id).glob("*.json*"))
    folder = workspace.benchmark("animals-judged")
    for retriever in ("bm25", "static-minilm"):  # here: the server's jobs are processes of their own
        started = evaluation.start(workspace, EvaluationConfig(retriever=retriever, benchmark="animals-judged"))
        assert jobs.show(workspace, started).state == "finished"
    pool, asked = judged.read_pool(folder), {}
    for line in (folder / "queries.jsonl").read_text().splitlines():
        asked[json.loads(line)["_id"]] = json.loads(line)["text"].split()[3]
    by_keyboard, others = judged.sampled(pool)[:n_by_keyboard], judged.sampled(pool)[n_by_keyboard:10]
    for query in others:
        grades = {d: 3 if d.startswith(asked[query]) else 0 for d in judged.to_label(pool, query)}
        judged.add_labels(folder, query, grades, "Ada")
    tab.open("compare?benchmark=animals-judged&baseline=bm25").see("Uncalibrated")
    tab.press("Label queries", role="link")
    tab.see("Enter your name")
    tab.type("Your name", "Ada").see("Passage 1 of")
    done = len(judged.read_labels(folder))
    for query in by_keyboard:
        for document in judged.to_label(pool, query):
            tab.page.keyboard.press("3" if document.startswith(asked[query]) else "0")
            done += 1
            until(lambda n=done: len(judged.read_labels(folder)) == n, f"label {done}", 20)  # type: ignore[misc]
            tab.idle()
    assert sorted(judged.finished(pool, judged.read_labels(folder))) == sorted(judged.sampled(pool)[:10])
    tab.see("10 of 12 queries labelled by people (Ada 10)").shot("21-labelled")
    assert {label.by for label in judged.read_labels(folder)} == {"Ada"}
    tab.press("Compare with corrected figures", role="link").see("Corrected by 10 queries of people")
    tab.shot("22-corrected")
    assert "Traceback" not in server.console()
