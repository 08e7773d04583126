"""Every word on the pages stands out from what is behind it, in the light and the dark theme (WCAG 2.1, 1.4.3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.conftest import Looker, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LEAST = 4.5

FAINT_WORDS = """least => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const over = (top, alpha, below) => below.map((value, i) => top[i] * alpha + value * (1 - alpha));
  const light = colour => [0.2126, 0.7152, 0.0722].reduce((sum, share, i) => {
    const value = colour[i] / 255;
    return sum + share * (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  }, 0);
  const behind = element => {
    const layers = [];
    for (; element; element = element.parentElement) {
      const [r, g, b, alpha = 1] = parts(getComputedStyle(element).backgroundColor);
      if (alpha > 0) layers.push([[r, g, b], alpha]);
      if (alpha === 1) break;
    }
    return layers.reverse().reduce((below, [top, alpha]) => over(top, alpha, below), [255, 255, 255]);
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const words = texts.currentNode.textContent.trim(), element = texts.currentNode.parentElement;
    if (!words || !element.checkVisibility() || element.closest('svg, style, script, [data-testid=stSlider]')) continue;
    const ground = behind(element);
    let [r, g, b, alpha = 1] = parts(getComputedStyle(element).color);
    for (let e = element; e; e = e.parentElement) alpha *= Number(getComputedStyle(e).opacity);
    const [one, other] = [light(over([r, g, b], alpha, ground)), light(ground)];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < least) found.push(`${words.slice(0, 40)}: ${contrast.toFixed(2)}`);
  }
  return found;
}"""


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out(dark: bool, full_server: Server, look: Callable[..., Looker]) -> None:
    tab = look(full_server, dark=dark)
    for path in ("", "queries", "complexity", "launch", "jobs", "compare?baseline=static-minilm", "evidence"):
        tab.open(path).drawn()
        assert tab.page.evaluate(FAINT_WORDS, LEAST) == [], path
