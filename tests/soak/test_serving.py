"""``cdp serve`` as a process in use: 200 official clients at once, 10,000 requests, the memory that it then holds."""

from __future__ import annotations

import asyncio

import httpx
import numpy as np
import openai
import pytest

from cdp.base.workspace import Workspace
from cdp.retrievers.encode import encode
from cdp.retrievers.resolve import resolve
from cdp.serving.engine import load_encoder
from perf.serving import ask, resident, server
from tests.support import run_async

pytestmark = pytest.mark.soak


def test_two_hundred_clients_then_ten_thousand_requests(workspace: Workspace) -> None:
    texts = [f"client {n} wants to know how honeybees dance" for n in range(200)]
    encoder = load_encoder(resolve("static-minilm", workspace), "cpu")
    expected = encode(encoder.model, texts, encoder.encoding("query", "fp32"))
    with server("cdp", "serve", "static-minilm", "--port", "0", "--json") as running:
        port = running.port

        async def use(n: int) -> None:
            async with openai.AsyncOpenAI(
                base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=60,
                http_client=httpx.AsyncClient(timeout=60, trust_env=False),
            ) as api:  # fmt: skip
                for _ in range(5):
                    answer = await api.embeddings.create(model="static-minilm:query", input=texts[n])
                    assert np.array_equal(np.array(answer.data[0].embedding, np.float32), expected[n])

        async def all_of_them() -> None:
            await asyncio.gather(*(use(n) for n in range(200)))

        run_async(all_of_them())
        ask(port, "static-minilm", 200, 2000)
        before = resident(running.pid)
        ask(port, "static-minilm", 200, 10_000)
        after = resident(running.pid)
        print(f"{before:.1f} MiB, after 10,000 more requests {after:.1f} MiB")
        assert after < before + 16, "what a request leaves behind would be megabytes after 10,000"
