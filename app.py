"""The dashboard. Run it with ``make app``, or ``streamlit run app.py``.

``streamlit run`` serves ``app``, whose script for every session is the router. Nothing here or in ``pages/`` loads a
model library: models are loaded by the processes of jobs.
"""

from __future__ import annotations

import importlib
import pkgutil
from contextlib import suppress

import streamlit as st

import cdp.services
import cdp.ui
from cdp.base.errors import CdpError
from cdp.base.registry import HOMES, registry
from cdp.ui.shell import router

# Sessions are threads. Modules that they import first at once may wait for each other, which Python ends with an error.
for package in (cdp.services, cdp.ui):
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(info.name)
importlib.import_module("scipy.special")  # a quarter of Decide's first paint, paid before anyone waits
for kind in HOMES:
    with suppress(CdpError):  # a plug-in that cannot be loaded: the page that needs it says so
        len(registry(kind))

app = st.App(router.__file__)

if __name__ == "__main__":  # run as a plain script, as the tests do
    router.main()
