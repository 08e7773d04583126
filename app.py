"""The dashboard's router: the menu, the strip of running jobs, and the page that was asked for.

Run it with ``make app``, or ``streamlit run app.py``. Nothing here or in ``pages/`` loads a model library: models are
loaded by the processes of jobs.
"""

from __future__ import annotations

import streamlit as st

from cdp.ui import frame, jobs, navigation
from cdp.workspace import Workspace


def main() -> None:
    """Draw the frame around the current page, then the page."""
    st.set_page_config(page_title="CDP Studio", page_icon=":material/hub:", layout="wide")
    pages = [
        st.Page(
            page.path,
            title=page.title,
            icon=f":material/{page.icon}:",
            url_path=page.name,
            help=page.question,
            default=page.name == "overview",
        )
        for page in navigation.PAGES.values()
    ]
    current = st.navigation(pages, position="hidden")
    with st.sidebar:
        st.markdown("### :material/hub: CDP Studio")
        navigation.sidebar()
        jobs.strip(Workspace.default())
    with frame.guarded():
        current.run()


if __name__ == "__main__":
    main()
