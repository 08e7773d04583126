"""The frame around every page: the menu, the strip of running jobs, and the page that was asked for.

The server runs this file for every session (see ``app.py``), not ``app.py`` itself: beside a folder called ``pages``
Streamlit would start in its old multipage mode, and the first deep link after a restart would say "page not found".
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from cdp.base.workspace import Workspace, open_workspace, private_files
from cdp.ui.jobs import live as jobs
from cdp.ui.shell import access, frame, navigation, project, state

ASSETS = Path(__file__).resolve().parent / "assets"
MENU_WIDTH = 230
"""Pixels; on a phone the menu is folded away."""


def main() -> None:
    """Draw the frame around the current page, then the page."""
    st.set_page_config(
        page_title="CDP Studio", page_icon=str(ASSETS / "icon.svg"), layout="wide", initial_sidebar_state=MENU_WIDTH
    )
    private_files()
    access.declare()
    access.sign_in()
    usable = False
    with frame.guarded():
        open_workspace(Workspace.default())
        usable = True
    if not usable:
        st.stop()
    pages = [
        st.Page(
            page.file,
            title=page.title,
            icon=f":material/{page.icon}:",
            url_path=page.name,
            help=page.question,
            default=page.name == "overview",
        )
        for page in navigation.PAGES.values()
    ]
    current = st.navigation(pages, position="hidden")
    st.html(ASSETS / "style.css")
    st.logo(str(ASSETS / "logo.svg"), size="large", icon_image=str(ASSETS / "icon.svg"))
    state.begin(current.url_path)
    with st.sidebar:
        with frame.guarded():
            project.switcher(Workspace.default())
        navigation.sidebar()
        access.who()
        jobs.strip(Workspace.default())
    with frame.guarded(), frame.unexpected():
        current.run()


if __name__ == "__main__":
    main()
