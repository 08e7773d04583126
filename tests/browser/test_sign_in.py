"""Sign-in by OpenID Connect, from a browser through the server to a provider and back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser import oidc
from tests.browser.conftest import Looker, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SECRETS = """
[auth]
redirect_uri = "{{url}}/oauth2callback"
cookie_secret = "only for this test, and long enough for it"
client_id = "{client_id}"
client_secret = "{client_secret}"
server_metadata_url = "{provider}/.well-known/openid-configuration"
allowed = {allowed}
"""


def secrets(provider: oidc.Provider, allowed: str) -> str:
    return SECRETS.format(
        client_id=oidc.CLIENT_ID, client_secret=oidc.CLIENT_SECRET, provider=provider.url, allowed=allowed
    )


def asked_to_sign_in(tab: Looker) -> Looker:
    return tab.see("Sign in to see this workspace.")


def test_in_and_out(serve: Callable[..., Server], look: Callable[..., Looker]) -> None:
    """Ada is on the list, Eve is not, and a token with a wrong signature opens nothing."""
    with oidc.provider("ada@example.org") as provider:
        server = serve(with_demo=True, secrets=secrets(provider, '["@example.org"]'))
        tab = look(server)
        asked_to_sign_in(tab.open("documents"))
        assert "demo" not in tab.page.inner_text("body")

        right, provider.signing_key = provider.signing_key, oidc.new_key()  # not the key that it publishes
        tab.page.get_by_role("button", name="Sign in").click()
        tab.page.get_by_role("link", name="Continue as ada@example.org").click()
        asked_to_sign_in(tab)
        assert {"/jwks", "/token"} <= set(provider.asked)

        provider.email, provider.signing_key = "eve@example.com", right
        tab.page.get_by_role("button", name="Sign in").click()
        tab.page.get_by_role("link", name="Continue as").click()
        tab.see("has no access to this workspace")
        assert "eve@example.com" in tab.page.inner_text("body").replace("\u2060", "")
        assert "demo" not in tab.page.inner_text("body")
        tab.page.get_by_role("button", name="Sign out").click()
        asked_to_sign_in(tab)
        assert "/logout" in provider.asked

        provider.email = "ada@example.org"
        provider.asked.clear()
        tab.page.get_by_role("button", name="Sign in").click()
        tab.page.get_by_role("link", name="Continue as").click()
        tab.see("Trained retrievers")
        assert "ada@example.org" in tab.page.get_by_test_id("stSidebar").inner_text().replace("\u2060", "")
        tab.page.get_by_role("button", name="Sign out").click()
        asked_to_sign_in(tab)
        assert "/logout" in provider.asked
