"""The books of one job: each request is written down, and its price set aside, before it is sent."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from cdp.llm.answers import Answer, Cancelled, RequestError, Usage
from cdp.llm.cache import AnswerCache
from cdp.llm.prices import Price


class OverBudget(Cancelled):
    """What is left of the budget does not pay for another request."""


class Account:
    """What a job has spent, over all its attempts, and what is on its way. Safe to share between threads.

    With a budget, the largest price that a request can have is set aside before it is sent, so that what is queued
    cannot overshoot. Where that no longer fits, requests go one at a time as long as the price of a usual one fits:
    the last of them may cost more than what was left, and nothing else can.
    """

    def __init__(
        self, cache: AnswerCache, job: str, *, price: Price | None = None, budget: float | None = None
    ) -> None:
        self.spent = cache.spent(job)
        self.used_up = False
        self._cache = cache
        self._job = job
        self._price = price
        self.budget = budget
        self._reserved: list[float] = []
        self._closed = False
        self._change = threading.Condition()

    @property
    def cost(self) -> float | None:
        """US dollars; None where the model has no price."""
        return self._price.cost(self.spent) if self._price else None

    def ask(self, key: str, usual: Usage, most: Usage, send: Callable[[], Answer]) -> Answer:
        """The answer of ``send``, kept in the cache at ``key``; raises OverBudget, and what ``send`` raises.

        ``usual`` is what such a request consumes as a rule, ``most`` what it consumes at the most.
        """
        amount = self._reserve(usual, most)
        usage, answer = Usage(), None
        try:
            self._cache.begin(self._job, key, usual)
            try:
                answer = send()
                usage = answer.usage
            except (RequestError, Cancelled) as error:
                usage = error.usage
                raise
            finally:
                self._cache.settle(self._job, key, usage, answer)
            return answer
        finally:
            with self._change:
                self.spent += usage
                self._reserved.remove(amount)
                self._change.notify_all()

    def close(self) -> None:
        """Nobody waits for the budget any longer."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def _reserve(self, usual: Usage, most: Usage) -> float:
        """Set aside the price of a request, waiting for those on their way where it does not fit; US dollars."""
        with self._change:
            while self._price is not None and self.budget is not None:
                if self._closed:
                    raise Cancelled
                left = self.budget - self._price.cost(self.spent) - math.fsum(self._reserved)
                expected = max(self._price.cost(usual), self._mean_price())
                amount = self._price.cost(most)
                if amount <= left or (not self._reserved and expected <= left):
                    break
                if not self._reserved:
                    self.used_up = True
                    raise OverBudget
                self._change.wait()
            else:
                amount = 0.0
            self._reserved.append(amount)
            return amount

    def _mean_price(self) -> float:
        """Of the requests answered so far."""
        return self._price.cost(self.spent) / self.spent.requests if self._price and self.spent.requests else 0.0
