"""Prices of models: ``data/prices/prices.json`` with its date, or the workspace's edited table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cdp.base.errors import ConfigError, WorkspaceError
from cdp.base.workspace import SHIPPED_DATA, Workspace, read_json, write_json
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

    @property
    def usable(self) -> bool:
        numbers = (self.input, self.output)
        finite = all(math.isfinite(n) and n >= 0 for n in numbers)
        return bool(self.model.strip()) and finite and 0 <= self.batch_discount <= 1


@dataclass(frozen=True)
class PriceTable:
    """The prices in use and their date; ``own``: edited in this workspace."""

    as_of: str
    rows: tuple[Price, ...]
    own: bool


def dollars(value: float | None) -> str:
    """Return ``$1.23``, small amounts with more digits; a dash for None."""
    if value is None:
        return "–"
    return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:.2g}"


def priced(cost: float | None, price: Price | None, how: str) -> str:
    """Return ``about $1.23 (prices as of 2026-01-01)`` with ``how`` in front, or that the price is unknown."""
    return f"{how} {dollars(cost)} (prices as of {price.as_of})" if price else "its price is unknown"


def price_file(workspace: Workspace) -> Path:
    """Return the path of the price table in use: the workspace's edited one, else the shipped one."""
    own = workspace.root / "prices.json"
    return own if own.exists() else PRICES


def load_price(model: str, path: Path | None = None) -> Price | None:
    """Return the price of a model, also of a dated version of a priced one (gpt-4o-mini-2024-07-18)."""
    table = _read(path or PRICES)
    dated = [row for row in table.rows if model == row.model or _dated(model, row.model)]
    return max(dated, key=lambda row: len(row.model), default=None)


def price_of(workspace: Workspace, model: str, budget: float | None = None) -> Price | None:
    """Return the price of a model by the table in use. ConfigError where a budget needs one and there is none."""
    price = load_price(model, price_file(workspace))
    if budget is not None and price is None:
        raise ConfigError(
            f"There is no price for {model!r}, so a budget cannot be kept.",
            hint="Add the model to the price table, or leave the budget out.",
        )
    return price


def read_prices(workspace: Workspace) -> PriceTable:
    """Return the table in use; WorkspaceError if its file is damaged."""
    return _read(price_file(workspace))


def write_prices(workspace: Workspace, rows: Sequence[Price], as_of: str) -> None:
    """Save an edited table in the workspace; ConfigError names all invalid rows."""
    problems = [f"{row.model or 'a row without a name'} has no price" for row in rows if not row.usable]
    names = [row.model for row in rows]
    problems += [f"{name} is listed twice" for name in sorted({name for name in names if names.count(name) > 1})]
    if problems:
        raise ConfigError.from_problems(
            problems, hint="Give US dollars per million tokens, and a discount from 0 to 1."
        )
    kept = ("input", "output", "batch_discount")
    models: Mapping[str, dict[str, float]] = {row.model: {n: asdict(row)[n] for n in kept} for row in rows}
    write_json(workspace.root / "prices.json", {"as_of": as_of, "models": models})


def _read(path: Path) -> PriceTable:
    table = read_json(path)
    try:
        as_of = str(table["as_of"])
        rows = tuple(_row(name, entry, as_of) for name, entry in table["models"].items())
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise WorkspaceError(
            f"The price table {path.name} is damaged near {str(error)[:120]}.", hint="See its note."
        ) from error
    return PriceTable(as_of, rows, path != PRICES)


def _dated(model: str, undated: str) -> bool:
    """Return True if ``model`` is ``undated`` with a release date, as in gpt-4o-mini-2024-07-18."""
    rest = model.removeprefix(undated)
    return rest != model and rest.startswith("-") and rest[1:].replace("-", "").isdigit()


def _row(name: str, entry: Mapping[str, object], as_of: str) -> Price:
    read, written, discount = entry["input"], entry["output"], entry.get("batch_discount", 0)
    row = Price(name, float(str(read)), float(str(written)), float(str(discount)), as_of)
    if not row.usable:
        raise ValueError(f"{name!r}, which has no price")
    return row
