"""Who may do what: the table in the documentation is the one that is enforced, and a mode is never loosened."""

from __future__ import annotations

import pytest

from cdp.base import permission
from cdp.base.hosts import loopback
from cdp.base.permission import ABOUT, TABLE, Action, Mode, NotAllowedError, ReadOnlyError
from tests.support import REPOSITORY

PAGE = REPOSITORY / "docs" / "RELIABILITY.md"
BEGIN, END = "<!-- modes -->\n", "<!-- /modes -->"


def documented() -> str:
    """The table as it must stand in the documentation."""
    columns = list(Mode)
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    lines += [
        f"| {action} | {' | '.join('yes' if mode in TABLE[action] else '–' for mode in columns)} |" for action in Action
    ]
    return "\n".join([*(f"- **{mode}**: {ABOUT[mode]}" for mode in columns), "", *lines]) + "\n"


def test_the_documentation_shows_the_table_that_is_enforced() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == documented()


def test_every_action_has_its_row_and_the_operator_may_all() -> None:
    assert set(TABLE) == set(Action)
    assert all(Mode.OPERATOR in allowed for allowed in TABLE.values())
    assert [action for action in Action if Mode.READ_ONLY in TABLE[action]] == [Action.LOOK, Action.SEARCH]


def become(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    if mode is Mode.READ_ONLY:
        monkeypatch.setenv(permission.READ_ONLY, "1")
    if mode is not Mode.OPERATOR:
        permission.in_dashboard(shared=mode is Mode.SHARED)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("action", list(Action), ids=lambda action: action.name)
def test_each_action_in_each_mode(action: Action, mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    become(mode, monkeypatch)
    assert permission.mode() is mode
    if mode in TABLE[action]:
        permission.require(action)
        return
    with pytest.raises(ReadOnlyError if mode is Mode.READ_ONLY else NotAllowedError):
        permission.require(action)


def test_a_mode_is_never_loosened() -> None:
    permission.in_dashboard(shared=True)
    permission.in_dashboard()
    assert permission.mode() is Mode.SHARED


def test_the_operator_may_say_that_it_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    permission.in_dashboard()
    assert permission.mode() is Mode.LOCAL
    monkeypatch.setenv(permission.SHARED, "1")
    assert permission.mode() is Mode.SHARED


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.0.0.2", True), ("", False), ("0.0.0.0", False),
     ("::", False), ("192.168.1.2", False), ("studio.example.org", False), ("localhost.example.org", False)],
)  # fmt: skip
def test_which_addresses_are_this_machines_alone(host: str, alone: bool) -> None:
    assert loopback(host) is alone
