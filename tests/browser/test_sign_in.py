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
    with oidc.provider("ada@example.org") as provider:
        server = serve(with_demo=True, secrets=secrets(provider, '["@example.org"]'))
        tab = look(server)
        for path in ("", "corpus"):
            asked_to_sign_in(tab.open(path))
            assert "demo" not in tab.page.inner_text("body")
        tab.page.get_by_role("button", name="Sign in").click()
        tab.page.get_by_role("link", name="Continue as ada@example.org").click()
        tab.see("of 5 steps done")
        tab.page.get_by_role("button", name="Sign out").wait_for()
        assert "ada@example.org" in tab.page.get_by_test_id("stSidebar").inner_text().replace("\u2060", "")
        assert {"/jwks", "/token"} <= set(provider.asked)

        tab.page.reload()
        tab.see("of 5 steps done")
        asked_to_sign_in(look(server, stranger=True).open())  # another browser is nobody yet

        tab.page.get_by_role("button", name="Sign out").click()
        asked_to_sign_in(tab)
        assert "/logout" in provider.asked
        tab.page.reload()
        asked_to_sign_in(tab)
        assert "Traceback" not in server.console()


def test_who_is_not_on_the_list_is_told_so(serve: Callable[..., Server], look: Callable[..., Looker]) -> None:
    with oidc.provider("eve@example.com") as provider:
        server = serve(with_demo=True, secrets=secrets(provider, '["ada@example.org"]'))
        tab = asked_to_sign_in(look(server).open())
        tab.page.get_by_role("button", name="Sign in").click()
        tab.page.get_by_role("link", name="Continue as").click()
        tab.see("has no access to this workspace")
        assert "eve@example.com" in tab.page.inner_text("body").replace("\u2060", "")
        assert "demo" not in tab.page.inner_text("body")
        tab.page.get_by_role("button", name="Sign out").click()
        asked_to_sign_in(tab)


def test_a_forged_token_opens_nothing(serve: Callable[..., Server], look: Callable[..., Looker]) -> None:
    with oidc.provider("ada@example.org") as provider:
        server = serve(with_demo=True, secrets=secrets(provider, "[]"))
        tab = asked_to_sign_in(look(server).open())
        provider.signing_key = oidc.new_key()  # what it signs with is not what it publishes
        tab.page.get_by_role("button", name="Sign in").click()
        tab.page.get_by_role("link", name="Continue as").click()
        asked_to_sign_in(tab)
        assert {"/token", "/jwks"} <= set(provider.asked)


def test_without_configuration_nobody_is_asked(demo_server: Server, look: Callable[..., Looker]) -> None:
    tab = look(demo_server).open().see("of 5 steps done")
    assert tab.page.get_by_role("button", name="Sign in").count() == 0
    assert tab.page.get_by_role("button", name="Sign out").count() == 0
