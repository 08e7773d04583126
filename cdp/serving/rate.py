"""How often one client may ask: a token bucket each, filled at a rate and never above twice of it."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

CLIENTS = 10_000
"""Buckets that are kept; those used longest ago are forgotten, and full again if their client returns."""


class RateLimit:
    """``rate`` requests per second and client; 0 lets everybody through."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.clock = rate, clock
        self.burst = max(1.0, 2 * rate)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> int:
        """0 if this client may ask now, else the seconds after which it may."""
        if not self.rate:
            return 0
        now = self.clock()
        key = _key(client)
        tokens, at = self._buckets.pop(key, (self.burst, now))
        tokens = min(self.burst, tokens + (now - at) * self.rate)
        allowed = tokens >= 1
        self._buckets[key] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > CLIENTS:
            self._buckets.popitem(last=False)
        return 0 if allowed else max(1, math.ceil((1 - tokens) / self.rate))


def _key(client: str) -> str:
    """An IPv6 client usually has a whole /64 of addresses."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    return str(int(address) >> 64) if isinstance(address, IPv6Address) else client
