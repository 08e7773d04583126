"""The endpoint that a workspace remembers: generator, address and model, typed once for all forms; never a key."""

from __future__ import annotations

from contextlib import suppress

from cdp.base.errors import CdpError
from cdp.base.permission import Action, may
from cdp.base.records import fields, whole
from cdp.base.workspace import Workspace, write_json
from cdp.llm import address
from cdp.services import access
from cdp.studies import own_test

FILE = "endpoint.json"
NAMES = ("generator", "base_url", "model")
_ENDPOINT = fields(generator=str, base_url=str, model=str)


def remembered(workspace: Workspace) -> dict[str, str]:
    """Return the generator, address and model that were typed last; without any, the operator's address or nothing."""
    found = whole(_ENDPOINT, workspace.root / FILE) or {}
    known = {name: str(found[name]) for name in NAMES if found.get(name)}
    for url in access.configured()[:1]:
        known.setdefault("base_url", url)
    return known


@access.writes
def remember(workspace: Workspace, generator: str, base_url: str, model: str) -> None:
    """Keep what was typed for the next form, session and tab.

    Nothing is kept of an address that is none or holds a key, nor where visitors share a dashboard.
    """
    values = {"generator": generator, "base_url": base_url.strip(), "model": model.strip()}
    if not may(Action.ANY_ENDPOINT) or not (values["base_url"] or values["model"]):
        return
    with suppress(CdpError):
        if values["base_url"]:
            address.parse(values["base_url"])
        if values != whole(_ENDPOINT, workspace.root / FILE):
            write_json(workspace.root / FILE, values)


def writer(workspace: Workspace, corpus: str) -> dict[str, str]:
    """Return who writes where nothing was said: recorded queries of the corpus, the endpoint that is remembered or that
    the operator set up, the last generator; settings of ``TrialConfig``. Empty: templates, the last resort."""
    last = own_test.last_generator(workspace, corpus)
    if last.get("generator") == "recorded":
        return last
    known = remembered(workspace)
    if known.get("model") or (known.get("base_url") and access.server_key(known["base_url"])):
        return {**known, "generator": "openai"}
    return last
