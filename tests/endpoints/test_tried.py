"""What ``make endpoints`` counts and writes down, without its servers: a second payment is seen, a stale page too."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.endpoints import counting, table
from tests.endpoints.counterparts import COUNTERPARTS
from tests.endpoints.counting import Counting
from tests.endpoints.table import Column
from tests.synthesis.server import KEY, MODEL, ChatServer, chat_server


def _ask(between: Counting, *texts: str) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    httpx.post(f"{between.url}/embeddings", json={"model": MODEL, "input": list(texts)}, headers=headers)


@pytest.fixture
def behind() -> Iterator[ChatServer]:
    with chat_server() as server:
        yield server


@pytest.mark.slow
def test_a_text_that_is_paid_again_is_counted_in_whichever_batch_it_comes(behind: ChatServer) -> None:
    with counting.counting(behind.url) as between:
        _ask(between, "bee", "stone")
        _ask(between, "river")
        assert (between.answered, between.twice) == (2, 0)
        _ask(between, "winter", "bee")
        assert between.twice == 1
        behind.script.append("500")
        _ask(between, "river")
        assert between.twice == 1, "an error is not paid"
        between.forget()
        _ask(between, "bee")
        assert between.twice == 0


@pytest.mark.slow
def test_only_what_was_on_its_way_at_a_kill_may_be_paid_again(
    behind: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "JUST_S", 0.0)
    with counting.counting(behind.url) as between:
        _ask(between, "bee")
        behind.latency = 0.05
        asking = threading.Thread(target=_ask, args=(between, "stone"))
        asking.start()
        while between.asked.total() != 2:
            time.sleep(0.002)
        between.client_killed()
        between.settle()
        asking.join()
        _ask(between, "stone")
        assert between.twice == 0
        _ask(between, "bee")
        assert between.twice == 1


def test_the_page_names_each_server_with_the_version_that_is_installed() -> None:
    columns = [Column(counterpart, {"`GET /models`": "never seen"}) for counterpart in COUNTERPARTS]
    different = table.differences(columns)
    # Each column is there, and says something else than this.
    assert len(different) == len(COUNTERPARTS)
    assert [line for line in different if "the page says nothing" in line] == []


def test_a_cell_with_a_bar_is_read_as_one() -> None:
    column = Column(COUNTERPARTS[0], {"`n`": "1 \\| 2", "`usage`": json.dumps({"prompt_tokens": 1})})
    found = table._cells(table.markdown([column]))
    assert {row: cell.replace("\0", "\\|") for (_, row), cell in found.items()} == column.cells
