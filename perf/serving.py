"""How many requests a second does `cdp serve` answer, and how late the slowest, with 1, 16 and 200 clients at once?

Ours is the whole server: limits, log, metrics, one text per request, its embedding in base64. The peer is what one
writes in an afternoon with the same libraries: a Starlette route that takes a lock, calls sentence-transformers'
``encode`` with the request's text, and answers in the same form, with neither limits nor log. Both are processes of
their own; the clients are a third one, with a connection each that they keep. Rounds of both sides alternate. Before
any time is taken both give the same embeddings.

    python -m perf.serving                         # also what the server holds after 10,000 requests
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil

from cdp.base.workspace import SHIPPED_DATA, read_jsonl
from perf.timing import Row, show

# Each with how many times the requests of a round it gets: one is many times as fast as the other.
RETRIEVERS = {"static-minilm": 5, "minilm": 1}

# Clients at once, and the requests of one round.
CLIENTS = {1: 60, 16: 160, 200: 400}

HEAD = (
    b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)

# Both sides read one request at a time, with the same libraries; ours has limits and a log beside.
GOAL = 0.8

REPEATS = 3
# Requests between two looks at the memory.
MANY = 10_000


def texts() -> list[str]:
    lines = read_jsonl(SHIPPED_DATA / "demo" / "corpus.jsonl")
    return [" ".join(str(line["text"]).split()[start : start + 12]) for line in lines for start in (0, 12, 24)]


async def _client(port: int, bodies: list[bytes], taken: list[float], answers: list[bytes]) -> None:
    """One connection, one request after another. A plain socket: a client library would be slower than the server."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for body in bodies:
        began = time.perf_counter()
        writer.write(HEAD % len(body) + body)
        status = await reader.readuntil(b"\r\n\r\n")
        assert status.startswith(b"HTTP/1.1 200 "), status
        length = re.search(rb"content-length: (\d+)", status, re.IGNORECASE)
        assert length is not None
        answers.append(await reader.readexactly(int(length[1])))
        taken.append(time.perf_counter() - began)
    writer.close()


def ask(port: int, model: str, clients: int, requests: int) -> tuple[float, list[float], list[bytes]]:
    """(requests per second, seconds of each, answers of the first client)."""
    given = texts()
    bodies = [
        json.dumps({"model": model, "input": given[i % len(given)], "encoding_format": "base64"}).encode()
        for i in range(requests)
    ]
    taken: list[float] = []
    answers: list[list[bytes]] = [[] for _ in range(clients)]

    async def all_of_them() -> None:
        await asyncio.gather(*(_client(port, bodies[n::clients], taken, answers[n]) for n in range(clients)))

    began = time.perf_counter()
    asyncio.run(all_of_them())
    return requests / (time.perf_counter() - began), taken, answers[0]


@dataclass(frozen=True)
class Running:
    """A server's port and process."""

    port: int
    pid: int

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)


@contextlib.contextmanager
def server(*words: str) -> Iterator[Running]:
    """A server that is ready."""
    with tempfile.TemporaryDirectory() as workspace:
        process = subprocess.Popen(
            [sys.executable, "-m", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "CDP_WORKSPACE": workspace},
        )  # fmt: skip

        try:
            assert process.stdout is not None

            for line in process.stdout:
                told: dict[str, Any] = json.loads(line)
                if told["state"] == "ready":
                    yield Running(int(told["url"].rpartition(":")[2]), process.pid)
                    break
        finally:
            process.terminate()
            process.wait(60)


def peer(retriever: str) -> None:
    """The naive server; prints its address when it is ready, as ours does."""
    import threading

    import uvicorn
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from cdp.base.workspace import Workspace
    from cdp.retrievers import load, resolve
    from cdp.retrievers.presets import minilm_folder

    if retriever == "minilm":
        model = SentenceTransformer(str(minilm_folder()), device="cpu")
    else:
        ours = load(resolve(retriever, Workspace.default()), "cpu")
        table = next(iter(ours.state_dict().values()))
        model = SentenceTransformer(modules=[StaticEmbedding(ours.tokenizer, embedding_weights=table)], device="cpu")

    lock = threading.Lock()

    def encode(text: str) -> np.ndarray:
        with lock:
            return np.asarray(model.encode([text], normalize_embeddings=True, show_progress_bar=False)[0])

    async def embeddings(request: Request) -> JSONResponse:
        asked = await request.json()
        vector = base64.b64encode((await run_in_threadpool(encode, asked["input"])).tobytes()).decode()
        data = [{"object": "embedding", "index": 0, "embedding": vector}]
        return JSONResponse({"object": "list", "model": asked["model"], "data": data})

    encode("a")
    config = uvicorn.Config(
        Starlette(routes=[Route("/v1/embeddings", embeddings, methods=["POST"])]), port=0, log_config=None,
        access_log=False, http="h11",
    )  # fmt: skip

    made = uvicorn.Server(config)

    async def serve() -> None:
        task = asyncio.ensure_future(made.serve())
        while not made.started:
            await asyncio.sleep(0.05)
        port = made.servers[0].sockets[0].getsockname()[1]
        print(json.dumps({"state": "ready", "url": f"http://127.0.0.1:{port}"}), flush=True)
        await task

    asyncio.run(serve())


def resident(pid: int) -> float:
    """MiB that a process holds."""
    return float(psutil.Process(pid).memory_info().rss) / 2**20


def run() -> list[Row]:
    """Per retriever and number of clients a row of requests per second, and one of the slowest in a hundred."""
    rows = []
    for retriever, times in RETRIEVERS.items():
        with server("cdp", "serve", retriever, "--port", "0", "--json") as ours, server(
            "perf.serving", "peer", retriever
        ) as theirs:  # fmt: skip
            vectors = [
                np.stack(
                    [np.frombuffer(base64.b64decode(json.loads(a)["data"][0]["embedding"]), "<f4") for a in answers]
                )
                for answers in (ask(side.port, retriever, 1, 20)[2] for side in (ours, theirs))
            ]
            np.testing.assert_allclose(vectors[0], vectors[1], atol=2e-6)
            for clients, requests in CLIENTS.items():
                rows += _rows(retriever, clients, requests * times, ours, theirs)

            if retriever == "static-minilm":
                for number in range(4):
                    print(
                        f"{retriever}: {resident(ours.pid):,.1f} MiB after {number * MANY:,} more requests", flush=True
                    )
                    if number < 3:
                        ask(ours.port, retriever, 16, MANY)

    show(rows)
    return rows


def _rows(retriever: str, clients: int, requests: int, ours: Running, theirs: Running) -> list[Row]:
    spent: list[list[float]] = []

    def round_() -> list[tuple[float, list[float]]]:
        before = [side.cpu_seconds() for side in (ours, theirs)]
        taken = [ask(side.port, retriever, clients, requests)[:2] for side in (ours, theirs)]
        after = [side.cpu_seconds() for side in (ours, theirs)]
        spent.append([1000 * (b - a) / requests for a, b in zip(before, after, strict=True)])
        return taken

    measured = [round_() for _ in range(REPEATS)]
    rates = [(mine[0], other[0]) for mine, other in measured]

    name = f"serving {retriever}, {clients} client{'s' if clients > 1 else ''}"
    rows: list[Row] = [
        {"name": f"{name}, throughput", "ours": _middle([a for a, _ in rates]), "peer": _middle([b for _, b in rates]),
         "unit": "requests/s", "ratio": _middle([a / b for a, b in rates]), "target": GOAL,
         "spread": [min(a / b for a, b in rates), max(a / b for a, b in rates)]},
    ]  # fmt: skip
    for percentile in (50, 99):
        late = [[1000 * float(np.percentile(taken, percentile)) for _, taken in pair] for pair in measured]
        rows.append(
            {"name": f"{name}, p{percentile}", "ours": _middle([a for a, _ in late]),
             "peer": _middle([b for _, b in late]), "unit": "ms", "ratio": _middle([b / a for a, b in late]),
             "target": GOAL,
             "spread": [min(b / a for a, b in late), max(b / a for a, b in late)]}
        )  # fmt: skip

    ratios = [theirs_ / mine for mine, theirs_ in spent]
    rows.append(
        {"name": f"{name}, CPU per request", "ours": _middle([a for a, _ in spent]),
         "peer": _middle([b for _, b in spent]), "unit": "ms", "ratio": _middle(ratios),
         "target": GOAL, "spread": [min(ratios), max(ratios)]}
    )  # fmt: skip

    return rows


def _middle(values: list[float]) -> float:
    return float(np.median(values))


if __name__ == "__main__":
    if sys.argv[1:2] == ["peer"]:
        peer(sys.argv[2])
    else:
        run()
