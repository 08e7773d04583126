"""The theme's colours against WCAG 2.1: text at 4.5 to 1, what is drawn or pressed at 3 to 1, in light and dark."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from cdp.charts.style import METHOD_COLOURS, MUTED, PALETTE
from tests.support import REPOSITORY

THEME: dict[str, Any] = tomllib.loads((REPOSITORY / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
TEXT, GRAPHICS = 4.5, 3.0
MODES = ("light", "dark")


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.1 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def faded(colour: str, background: str, alpha: float) -> str:
    """``colour`` at ``alpha`` over ``background``: how Streamlit draws captions (0.6 of the text's colour)."""
    mixed = (
        round(alpha * int(colour[i : i + 2], 16) + (1 - alpha) * int(background[i : i + 2], 16)) for i in (1, 3, 5)
    )
    return "#" + "".join(f"{c:02x}" for c in mixed)


def test_the_measure_is_wcags() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ground", ["backgroundColor", "secondaryBackgroundColor", "sidebar"])
def test_text_and_links_can_be_read(mode: str, ground: str) -> None:
    theme = THEME[mode]
    back = theme["sidebar"]["backgroundColor"] if ground == "sidebar" else theme[ground]
    assert contrast(theme["textColor"], back) >= 7
    assert contrast(theme["linkColor"], back) >= TEXT
    assert contrast(faded(theme["textColor"], back, 0.6), back) >= TEXT, "captions"


@pytest.mark.parametrize("mode", MODES)
def test_the_strongest_mark_leaves_its_word_readable(mode: str) -> None:
    style = (REPOSITORY / "cdp" / "ui" / "shell" / "assets" / "style.css").read_text(encoding="utf-8")
    found = re.search(r"background: rgb\((\d+) (\d+) (\d+) / calc\(([\d.]+) \+ ([\d.]+) \* var\(--share", style)
    assert found is not None
    colour = "#" + "".join(f"{int(channel):02x}" for channel in found.groups()[:3])
    theme = THEME[mode]
    marked = faded(colour, theme["backgroundColor"], float(found[4]) + float(found[5]))
    assert contrast(theme["textColor"], marked) >= TEXT


@pytest.mark.parametrize("mode", MODES)
def test_the_main_button_stands_out_and_its_label_can_be_read(mode: str) -> None:
    theme = THEME[mode]
    assert contrast(theme["primaryColor"], theme["backgroundColor"]) >= GRAPHICS
    assert contrast("#ffffff", theme["primaryColor"]) >= TEXT


@pytest.mark.parametrize("colour", sorted({*PALETTE, *METHOD_COLOURS.values(), MUTED}))
def test_chart_colours_show_on_both_grounds(colour: str) -> None:
    """Every series also has its own dash, symbol or pattern, so that 2 to 1 suffices where the palette is bright."""
    for mode in MODES:
        assert contrast(colour, THEME[mode]["backgroundColor"]) >= 2.0


def test_the_palette_of_charts_and_theme_is_one() -> None:
    assert tuple(THEME["chartCategoricalColors"]) == PALETTE
