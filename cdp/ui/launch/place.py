"""Where what is started runs: this machine, or one of the clusters that the operator has named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import clusters, commands


@dataclass(frozen=True)
class Choice:
    """A cluster's address, "" where there is no choice to make."""

    on: str = ""

    @contextmanager
    def applied(self, workspace: Workspace) -> Iterator[None]:
        """What is started within runs there."""
        with clusters.chosen(workspace, self.on):
            yield

    def command(self, line: str) -> str:
        """A command line that does the same there."""
        return f"{line} {commands.options(on=self.on)}".rstrip()


def choose(workspace: Workspace, key: str) -> Choice:
    """The choice, where the operator has named a cluster; the workspace's own comes first."""
    named = clusters.named(workspace)
    if not named:
        return Choice()
    own = clusters.setting(workspace)
    options = [own, clusters.HERE, *(a for a in named if a != own)] if own else [clusters.HERE, *named]
    labels = {
        clusters.HERE: "This machine",
        **{address: f"Ray cluster {urlsplit(address).netloc}" for address in named},
    }
    on = st.selectbox(
        "Run on",
        options,
        format_func=lambda address: labels.get(address, address),
        key=f"{key}_on",
        help="Jobs on a Ray cluster look the same: state, log, stop and resume.",
        persist_state="session",
    )
    if on == clusters.HERE:
        return Choice(clusters.HERE if own else "")
    return Choice(on or "")
