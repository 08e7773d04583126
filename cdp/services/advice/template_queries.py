"""What has to be said of a measured answer where the template generator wrote queries that were trained on."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from cdp import query_sets
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace

BY_TEMPLATE = (
    "The template generator wrote queries trained on here and stands in for an LLM: what a model's queries would gain "
    "may differ."
)


def remarks(workspace: Workspace, sources: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The remark where it applies, as far as the sets of a study's sources are still there."""
    for source in sources:
        with suppress(CdpError):
            if query_sets.load(workspace, str(source["query_set"])).generator == "template":
                return (BY_TEMPLATE,)
    return ()
