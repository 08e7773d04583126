"""Who may come in, how often, and what the log keeps of it: no request needed."""

from __future__ import annotations

import time
from typing import Any

import pytest
from starlette.datastructures import Headers

from cdp.base.config import ServingConfig
from cdp.base.errors import ConfigError
from cdp.serving.door import Door, Facts, log_line
from cdp.serving.errors import ApiError
from cdp.serving.metrics import Metrics
from cdp.serving.rate import CLIENTS, RateLimit
from cdp.serving.server import check_token
from tests.serving.support import TOKEN


async def nothing(*_: Any) -> None:
    """An application that is never reached."""


def door(token: str = "", **settings: Any) -> Door:
    config = ServingConfig.from_dict({"retriever": "bm25", **settings})
    return Door(nothing, config, token, Metrics(waiting=lambda: 0, ready=lambda: True))


def refusal(door: Door, route: str = "/v1/search", **headers: str) -> tuple[int, str] | None:
    """Status and code with which a request with these headers is refused, None if it may come in."""
    try:
        door.check(Headers({name.replace("_", "-"): value for name, value in headers.items()}), "10.0.0.1", route)
    except ApiError as error:
        return error.status, error.code
    return None


@pytest.mark.parametrize("host", ["localhost:8600", "127.0.0.1:8600", "[::1]:8600", "LOCALHOST", ""])
def test_on_loopback_this_machine_may_ask(host: str) -> None:
    assert refusal(door(), host=host) is None


@pytest.mark.parametrize(
    "host", ["evil.example:8600", "localhost.evil.example", "127.0.0.1.nip.io", "[::", "0.0.0.0", "@"]
)
def test_a_name_that_somebody_points_here_is_refused(host: str) -> None:
    assert refusal(door(), host=host) == (403, "host_not_allowed")
    assert refusal(door(), "/healthz", host=host) is None


def test_allowed_hosts() -> None:
    behind = door(allowed_hosts="search.example, other.example")
    assert refusal(behind, host="Search.example:443") is None
    assert refusal(behind, host="localhost") is None
    outside = door(TOKEN, host="0.0.0.0", allowed_hosts="search.example")
    bearer = f"Bearer {TOKEN}"
    assert refusal(outside, host="10.0.0.7:8600", authorization=bearer) == (403, "host_not_allowed")
    assert refusal(outside, host="search.example", authorization=bearer) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:8601"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_pages_of_others_are_refused(headers: dict[str, str]) -> None:
    assert refusal(door(), host="localhost:8600", **headers) == (403, "origin_not_allowed")


def test_the_token() -> None:
    closed = door(TOKEN)
    for wrong in (
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        TOKEN,
        "Bearer ä",
    ):
        assert refusal(closed, host="localhost", authorization=wrong) == (401, "invalid_api_key"), wrong
        assert refusal(closed, "/metrics", host="localhost", authorization=wrong) is not None
    assert refusal(closed, host="localhost", authorization=f"bearer {TOKEN}") is None
    assert refusal(closed, "/healthz") is None


def test_beyond_loopback_a_token_is_needed_that_nobody_guesses() -> None:
    for host in ("0.0.0.0", "::", "10.1.2.3", "example.org", ""):
        config = ServingConfig.from_dict({"retriever": "bm25", "host": host})
        for token in ("", "short", "x" * 15, "with spaces in it 12345", "ünïcödé-ünïcödé-ünïcödé"):
            with pytest.raises(ConfigError) as error:
                check_token(config, token)
            assert not token or token not in str(error.value)
        assert check_token(config, f" {TOKEN}\n") == TOKEN
    assert check_token(ServingConfig.from_dict({"retriever": "bm25", "host": "::1"}), "") == ""
    with pytest.raises(ConfigError, match="the proxy"):
        check_token(ServingConfig.from_dict({"retriever": "bm25", "proxy": "127.0.0.1"}), "")


def test_a_bucket_per_client() -> None:
    now = [0.0]
    limit = RateLimit(2, clock=lambda: now[0])
    assert [limit.take("a") for _ in range(5)] == [0, 0, 0, 0, 1]
    assert limit.take("b") == 0
    now[0] = 0.5
    assert [limit.take("a"), limit.take("a")] == [0, 1]
    now[0] = 1000
    assert [limit.take("a") for _ in range(5)] == [0, 0, 0, 0, 1]
    slow = RateLimit(0.1, clock=lambda: now[0])
    assert [slow.take("a"), slow.take("a")] == [0, 10]
    assert not any(RateLimit(0).take("a") for _ in range(1000))


def test_buckets_of_many_addresses_do_not_fill_the_memory() -> None:
    limit = RateLimit(1, clock=lambda: 0.0)
    for n in range(CLIENTS + 500):
        limit.take(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}")
    assert len(limit._buckets) == CLIENTS
    assert [limit.take(f"2001:db8::{n:x}") for n in range(3)] == [0, 0, 1], "one /64 is one client"


def test_strangers_beyond_loopback_have_a_rate_and_this_machine_has_none() -> None:
    assert door().rate.rate == 0
    assert door(TOKEN, host="0.0.0.0").rate.rate == 50
    assert door(TOKEN, proxy="127.0.0.1").rate.rate == 50
    assert door(TOKEN, host="0.0.0.0", rate=3).rate.rate == 3
    limited = door(TOKEN, rate=1)
    answers = [refusal(limited, host="localhost") for _ in range(3)]
    assert answers == [(401, "invalid_api_key")] * 2 + [(429, "rate_limit_exceeded")], (
        "who guesses tokens is slowed too"
    )


def test_the_log_is_one_line_without_what_was_asked() -> None:
    facts = Facts("abc", "/v1/search", time.perf_counter(), 200, "", 1, 7, ["secret query"])
    scope = {
        "client": ("10.0.0.1", 5),
        "method": "GET",
        "path": "/v1/\nsearch \x1b[31m",
        "query_string": b"query=secret",
    }
    line = log_line(scope, facts, 0.0123, texts=False)
    assert "secret" not in line
    assert line.isprintable()
    assert line.endswith(r"10.0.0.1 GET /v1/\nsearch\x20\x1b[31m 200 12.3ms inputs=1 tokens=7 id=abc")
    assert log_line(scope, facts, 0.0123, texts=True).endswith('texts=["secret query"]')
