"""The dashboard. Run it with ``make app``, or ``streamlit run app.py``.

``streamlit run`` serves ``app``, whose script for every session is the router. Nothing here or in ``pages/`` loads a
model library: models are loaded by the processes of jobs.
"""

from __future__ import annotations

import streamlit as st

from cdp.ui.shell import router

app = st.App(router.__file__)

if __name__ == "__main__":  # run as a plain script, as the tests do
    router.main()
