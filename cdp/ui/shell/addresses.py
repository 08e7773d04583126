"""Addresses that name no page: they lead to the Overview, which says so.

Streamlit answers every address with its page and then shows a dialog of its own; this asks first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

import streamlit as st

from cdp.ui.shell.navigation import PAGES
from cdp.ui.shell.text import md

PARAM = "no_page"
FIRST = "overview"
RESERVED = {"healthz", "oauth2callback", "script-health-check"}
"""What the server itself answers at the root, beside names that begin with an underscore or hold a dot."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def unknown(path: str, base: str = "") -> str:
    """The part of an address's path that should name a page and names none; empty where all is well.

    ``base`` is the path under which the dashboard is served (``server.baseUrlPath``).
    """
    name = path.removeprefix(f"/{base}").strip("/")
    first = name.split("/")[0]
    if not name or name in PAGES or first in RESERVED or first.startswith("_") or "." in name:
        return ""
    return "" if first in ("static", "media", "component", "auth") else name


class UnknownPages:
    """ASGI middleware: who asks for a page that is not here, or for the Overview by name, is sent to the root.

    There Streamlit serves its first page; ``/overview`` itself it would not know.
    """

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        base = str(st.get_option("server.baseUrlPath") or "").strip("/")
        path = str(scope["path"])
        name = unknown(path, base) if _asks_for_a_page(scope) else ""
        home = _asks_for_a_page(scope) and path.rstrip("/").removeprefix(f"/{base}").strip("/") == FIRST
        if not name and not home:
            await self.app(scope, receive, send)
            return
        query = scope.get("query_string", b"").decode("latin-1") if home else f"{PARAM}={quote(name[:80], safe='')}"
        target = f"/{base}/".replace("//", "/") + (f"?{query}" if query else "")
        headers = [(b"location", target.encode("ascii")), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _asks_for_a_page(scope: Message) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    return b"text/html" in dict(scope["headers"]).get(b"accept", b"")


def notice() -> None:
    """What the address asked for, where it asked for a page that is not here."""
    name = st.query_params.get(PARAM)
    if name:
        st.info(
            "You are on the Overview instead. The menu lists every page.",
            title=f"There is no page {md(name, 80)}",
            icon=":material/explore_off:",
        )
