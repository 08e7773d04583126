"""Many sessions of a Streamlit server without as many browsers: its own protocol over a websocket."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect


@dataclass
class Load:
    """What the sessions met: seconds per run of a page, by page; and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, dict[str, float]]:
        shown = {}
        for page, values in self.seconds.items():
            ordered = sorted(values)
            shown[page] = {
                "runs": len(ordered), "median_s": round(ordered[len(ordered) // 2], 2),
                "p95_s": round(ordered[int(len(ordered) * 0.95)], 2), "largest_s": round(ordered[-1], 2),
            }  # fmt: skip
        return shown


async def _session(url: str, pages: Sequence[tuple[str, str]], until: float, load: Load, rng: random.Random) -> None:
    address = f"{url.replace('http', 'ws', 1)}/_stcore/stream"
    async with connect(address, subprotocols=["streamlit"], origin=url, max_size=None) as socket:  # type: ignore[arg-type, list-item]
        while time.monotonic() < until:
            page, query = rng.choice(pages)
            message = BackMsg()
            message.rerun_script.page_name = page
            message.rerun_script.query_string = query
            began = time.monotonic()
            await socket.send(message.SerializeToString())
            problem = await _until_finished(socket)
            load.seconds.setdefault(page, []).append(time.monotonic() - began)
            if problem:
                load.errors.append(f"{page}: {problem}")
            await asyncio.sleep(rng.uniform(0.5, 2.0))


async def _until_finished(socket: object) -> str:
    """Read what a run sends until it is over; the first exception that it shows, or empty."""
    problem = ""
    begun = False
    while True:
        data = await asyncio.wait_for(socket.recv(), 120)  # type: ignore[attr-defined]
        message = ForwardMsg()
        message.ParseFromString(data)
        kind = message.WhichOneof("type")
        if kind == "delta":
            element = message.delta.new_element
            if element.WhichOneof("type") == "exception":
                problem = element.exception.message
        elif kind == "page_not_found":
            problem = "page not found"
        elif kind == "new_session":
            begun = True
        elif kind == "script_finished" and begun and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
            return problem


def run(url: str, pages: Sequence[tuple[str, str]], *, sessions: int, seconds: float, seed: int = 0) -> Load:
    """So many sessions at once, each running pages (name, query string) one after the other with short pauses."""
    load = Load()

    async def one(number: int, until: float) -> None:
        try:
            await asyncio.sleep(0.1 * number)
            await _session(url, pages, until, load, random.Random(seed + number))
        except Exception as error:
            load.errors.append(f"session {number}: {type(error).__name__}: {error}")

    async def everybody() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(one(number, until) for number in range(sessions)))

    # In a thread of its own: playwright runs a loop in the caller's.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(everybody())).result()
    return load
