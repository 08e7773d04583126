"""The addresses of an endpoint, and which of them a request goes to.

One model may be served at several addresses, by a server on each node for example. Each takes the same number of
requests at once, and the next one goes to the address with the fewest on their way. An address that asks for a pause,
or that cannot be reached, is left out for that time; the others get its requests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cdp.synthesis.generators.base import Cancelled

if TYPE_CHECKING:
    from cdp.synthesis.models.endpoint import Endpoint

LONGEST_WAIT_S = 600.0
"""For an address to open: nobody wants to find a run waiting tomorrow."""

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
"""Before an address that cannot be reached is tried again, where others can be; doubled each time."""


@dataclass(eq=False)
class Address:
    """One address, and how it goes there.

    ``trouble`` is why it cannot be reached, as long as it cannot. ``closed_until`` is on the clock of
    ``time.monotonic``.
    """

    url: str
    endpoint: Endpoint
    reached: bool = False
    trouble: str = ""
    closed_until: float = 0.0
    under_way: int = 0
    sent: int = 0
    pause_s: float = FIRST_PAUSE_S


class Addresses:
    """Whose turn it is. Safe to share between threads.

    ``at_once`` requests may be on their way to each address.
    """

    def __init__(self, addresses: Sequence[Address], *, at_once: int) -> None:
        self.all = tuple(addresses)
        self._at_once = at_once
        self._change = threading.Condition()
        self._cancelled = False

    def __str__(self) -> str:
        return ", ".join(address.url for address in self.all)

    def take(self, failed: Address | None = None) -> Address:
        """An address that takes another request, waited for; ``release`` follows. Raises Cancelled after ``cancel``.

        Where there is a choice, not the one that ``failed`` last.
        """
        with self._change:
            while True:
                if self._cancelled:
                    raise Cancelled
                moment = time.monotonic()
                free = [a for a in self.all if a.under_way < self._room(a) and a.closed_until <= moment]
                if free:
                    break
                # One that is full is told by who releases it; one that is closed opens without a word.
                opens = [a.closed_until for a in self.all if a.closed_until > moment]
                self._change.wait(min(opens) - moment if opens else None)
            address = min(free, key=lambda a: (a is failed, a.under_way, a.sent))
            address.under_way += 1
            address.sent += 1
            return address

    def _room(self, address: Address) -> int:
        """How many requests may be on their way there: one, as a trial, where others could not reach it."""
        return 1 if address.trouble and len(self.all) > 1 else self._at_once

    def release(self, address: Address) -> None:
        """The request that ``take`` was called for is over."""
        with self._change:
            address.under_way -= 1
            self._change.notify()

    def answered(self, address: Address) -> None:
        """The server there said something, whatever it was."""
        address.reached = True
        if not address.trouble:
            return
        with self._change:
            told, address.trouble, address.pause_s = address.trouble, "", FIRST_PAUSE_S
        if told and len(self.all) > 1:
            print(f"{address.url} can be reached again.", flush=True)

    def close(self, address: Address, seconds: float) -> None:
        """No request to this address for so long."""
        with self._change:
            address.closed_until = max(address.closed_until, time.monotonic() + seconds)
            self._change.notify_all()

    def worth_waiting(self) -> bool:
        """Whether any address will take requests in a time that a run can wait."""
        return any(address.closed_until <= time.monotonic() + LONGEST_WAIT_S for address in self.all)

    def leave_out(self, address: Address, why: str) -> bool:
        """This address cannot be reached; whether another one can be, as far as is known. It is then tried again later,
        and the log says so."""
        with self._change:
            moment = time.monotonic()
            others = any(
                not other.trouble and other.closed_until <= moment + LONGEST_WAIT_S
                for other in self.all
                if other is not address
            )
            told, address.trouble = address.trouble, why
            if others and address.closed_until <= moment:  # several requests may come back from it at once
                address.closed_until = moment + address.pause_s
                address.pause_s = min(LONGEST_PAUSE_S, 2 * address.pause_s)
                self._change.notify_all()
        if others and not told:
            print(f"{address.url} cannot be reached ({why}): the other addresses get its requests.", flush=True)
        return others

    def none_reached(self) -> str:
        """What is wrong with each address, where none was ever reached; empty otherwise."""
        if any(address.reached or not address.trouble for address in self.all):
            return ""
        if len(self.all) == 1:
            return f"{self.all[0].url} cannot be reached ({self.all[0].trouble})."
        each = ", ".join(f"{address.url} ({address.trouble})" for address in self.all)
        return f"None of the {len(self.all)} addresses can be reached: {each}."

    def cancel(self, within_s: float) -> None:
        """No further request; those on their way get at most so much longer."""
        with self._change:
            self._cancelled = True
            self._change.notify_all()
        for address in self.all:
            address.endpoint.leave_within(within_s)
