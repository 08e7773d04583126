"""Prices of models, dollars in words: ``data/prices/prices.json``, and above it the workspace's own ``prices.json``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from cdp.base.errors import ConfigError, WorkspaceError
from cdp.base.records import Real, checked, fields
from cdp.base.workspace import SHIPPED_DATA, Workspace, read_json
from cdp.llm.answers import Usage

PRICES = SHIPPED_DATA / "prices" / "prices.json"


@dataclass(frozen=True)
class Price:
    """One model's price on the day ``as_of``, in US dollars per million tokens.

    ``batch_discount`` is the saved share with the provider's batch endpoint.
    """

    model: str
    input: float
    output: float
    batch_discount: float = 0.0
    as_of: str = ""

    def cost(self, usage: Usage) -> float:
        """Return the price of a usage in US dollars."""
        return (usage.input_tokens * self.input + usage.output_tokens * self.output) / 1e6


_DOLLARS = Annotated[Real, Field(ge=0)]
_ENTRY = fields({"input": _DOLLARS, "output": _DOLLARS}, batch_discount=Annotated[float, Field(ge=0, le=1)])
_TABLE = fields({"as_of": str, "models": dict[str, _ENTRY]})  # type: ignore[valid-type]


def dollars(value: float | None) -> str:
    """Return ``$1.23``, small amounts with more digits; a dash for None."""
    if value is None:
        return "–"
    return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:.2g}"


def priced(cost: float | None, price: Price | None, how: str) -> str:
    """Return ``about $1.23 (prices as of 2026-01-01)`` with ``how`` in front, or that the price is unknown."""
    return f"{how} {dollars(cost)} (prices as of {price.as_of})" if price else "its price is unknown"


def load_price(model: str, workspace: Workspace | None = None) -> Price | None:
    """Return the price of a model, also of a dated version of a priced one (gpt-4o-mini-2024-07-18).

    A price of the workspace takes the place of a shipped one. WorkspaceError if a table is damaged.
    """
    prices = _read(PRICES)
    if workspace is not None and (own := workspace.root / "prices.json").exists():
        prices |= _read(own)

    dated = [price for name, price in prices.items() if model == name or _dated(model, name)]
    return max(dated, key=lambda price: len(price.model), default=None)


def price_of(workspace: Workspace, model: str, budget: float | None = None) -> Price | None:
    """Return the price of a model by the table in use. ConfigError where a budget needs one and there is none."""
    price = load_price(model, workspace)
    if budget is not None and price is None:
        raise ConfigError(
            f"There is no price for {model!r}, so a budget cannot be kept.",
            hint=f"Write it into {workspace.root / 'prices.json'}, or leave the budget out.",
        )
    return price


def _read(path: Path) -> dict[str, Price]:
    try:
        table = checked(_TABLE, read_json(path), path)
    except WorkspaceError as error:
        problem = f"The price table {path.name} is damaged: {error.message}"
        raise WorkspaceError(problem, hint=f"{PRICES} shows its form.") from error
    return {
        name: Price(name, entry["input"], entry["output"], entry.get("batch_discount", 0.0), table["as_of"])
        for name, entry in table["models"].items()
    }


def _dated(model: str, undated: str) -> bool:
    """Return True if ``model`` is ``undated`` with a release date, as in gpt-4o-mini-2024-07-18."""
    rest = model.removeprefix(undated)
    return rest != model and rest.startswith("-") and rest[1:].replace("-", "").isdigit()
