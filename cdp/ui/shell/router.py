"""The frame around every page: sign-in, who may look, when a dashboard counts as shared, format check, logo.

The server runs this file for every session (see ``app.py``), not ``app.py`` itself: beside a folder called ``pages``
Streamlit would start in its old multipage mode, and the first deep link after a restart would say "page not found".

Without an ``[auth]`` section in ``.streamlit/secrets.toml`` the dashboard asks for no sign-in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from cdp.base import permission
from cdp.base.errors import CdpError
from cdp.base.hosts import host_of, loopback
from cdp.base.workspace import Workspace, many_files, open_workspace, private_files
from cdp.ui import jobs as job_views
from cdp.ui.shell import frame, state
from cdp.ui.shell.tables import md

# What a proxy adds to a request.
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip")


def configured() -> Mapping[str, Any] | None:
    """The ``[auth]`` section of the secrets, None without one."""
    try:
        section = st.secrets.get("auth")
    except FileNotFoundError:
        return None
    return section if isinstance(section, Mapping) and section else None


def allowed(email: str, verified: bool, people: Sequence[str]) -> bool:
    """Whether someone may look: everyone whom the provider lets in, or those on the list alone.

    An entry is an address (``ada@example.org``) or everyone of a domain (``@example.org``); the provider must have
    verified the address.
    """
    if not people:
        return True
    if not verified or email.count("@") != 1:
        return False
    address = email.strip().lower()
    listed = {entry.strip().lower() for entry in people}
    return address in listed or f"@{address.rpartition('@')[2]}" in listed


def reachable() -> bool:
    """Whether others can come here: the server listens beyond loopback, or somebody came through a proxy."""
    if not loopback(str(st.get_option("server.address") or "")):
        return True
    headers = st.context.headers
    if any(name in headers for name in FORWARDED):
        return True
    return not loopback(host_of(headers.get("Host", "localhost")))


def sign_in() -> None:
    """Stop here, with a way in, until someone who may look has signed in; do nothing where no sign-in is set up."""
    section = configured()
    if section is None:
        return

    if not st.user.get("is_logged_in"):
        st.title("CDP Studio", anchor=False)
        st.markdown("Sign in to see this workspace.")
        st.button("Sign in", type="primary", icon=":material/login:", key="sign_in", on_click=st.login)
        st.stop()

    people = section.get("allowed", ())
    email = str(st.user.get("email") or "")
    if not allowed(email, bool(st.user.get("email_verified")), [people] if isinstance(people, str) else list(people)):
        st.error(
            "Ask the administrator of this server for access, or sign in with another account.",
            title=f"{md(email or 'This account', 80)} has no access to this workspace",
            icon=":material/lock:",
        )
        st.button("Sign out", icon=":material/logout:", key="sign_out", on_click=st.logout)
        st.stop()


def who() -> None:
    """In the menu: who is signed in, and that nothing can be changed."""
    if permission.read_only():
        st.badge("Read-only", icon=":material/lock:", color="gray", help=permission.REASON)
    if configured() is not None and st.user.get("is_logged_in"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(md(st.user.get("email") or st.user.get("name") or "signed in", 60))
            st.button("Sign out", icon=":material/logout:", type="tertiary", key="sign_out", on_click=st.logout)


NAME = "CDP Studio"
ASSETS = Path(__file__).resolve().parent / "assets"
# Pixels; on a phone the menu is folded away.
MENU_WIDTH = 230


def main() -> None:
    """Draw the frame around the current page, then the page."""
    st.set_page_config(
        page_title=NAME, page_icon=str(ASSETS / "icon.svg"), layout="wide", initial_sidebar_state=MENU_WIDTH
    )
    private_files()
    many_files()
    # Sharing is decided here: with a sign-in, or where others can reach the server.
    permission.in_dashboard(shared=configured() is not None or reachable())
    sign_in()

    try:
        open_workspace(Workspace.default())
    except CdpError as error:
        frame.show_error(error)
        st.stop()

    pages = [
        st.Page(
            page.file, title=page.title, icon=f":material/{page.icon}:", url_path=page.name, help=page.question,
            default=page.name == "home",
        )
        for page in frame.PAGES.values()
    ]  # fmt: skip

    current = st.navigation(pages, position="hidden")
    st.html(ASSETS / "style.css")
    st.logo(str(ASSETS / "logo.svg"), size="large", icon_image=str(ASSETS / "icon.svg"))
    state.begin(current.url_path)

    with st.sidebar:
        with frame.guarded():
            state.switcher(Workspace.default())
        frame.sidebar()
        who()
        title, icon = job_views.news(Workspace.default())
        job_views.strip(Workspace.default())

    if title:
        st.set_page_config(page_title=f"{title} · {NAME}", page_icon=str(ASSETS / f"{icon}.svg"))
    with frame.guarded(), frame.unexpected():
        current.run()


if __name__ == "__main__":
    main()
