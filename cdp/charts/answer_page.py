"""The answer as one HTML file to send: headline, findings, figure of the intervals, its own style (phone, dark); every
text escaped, no script, no external address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from cdp.base.text import capital, signed
from cdp.base.version import __version__
from cdp.principle import Decision
from cdp.principle.decide import ArmDifference
from cdp.studies.advice import Option

# Nothing is loaded and nothing runs, also where a text holds markup.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733; }
h1 { font-size: 1.5rem; line-height: 1.3; overflow-wrap: anywhere; }
.badge { background: #e5eef5; border-radius: 1rem; padding: .15rem .7rem; }
.quiet, footer { color: #55636f; font-size: .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #d5dde4; }
svg { width: 100%; min-width: 32rem; height: auto; margin-top: 1.5rem; }
@media (prefers-color-scheme: dark) { body { background: #12181e; color: #e6edf3; } .badge { background: #24405a; }
  .quiet, footer { color: #9fb0be; } svg { background: #e6edf3; border-radius: .4rem; } }
"""

# Pixels of the figure: its width, the part for names, the height of a row, and room for half a number at each end.
WIDTH, NAMES, ROW, MARGIN = 720, 300, 26, 20


def answer_page(answer: Decision, options: Sequence[Option], *, when: str, task: str = "") -> str:
    """Return the page; ``options`` are those of ``advice.list_options``, ``task`` names the documents or queries."""
    limits = list(answer.limits)
    if answer.settling:
        limits.append(answer.settling.text)

    parts = [
        _tag("p", task, "quiet"),
        _tag("h1", answer.headline),
        _tag("p", capital(answer.badge), "badge", inner="span"),
        _tag("p", answer.rests_on, "quiet"),
        _list("Limits", limits),
        _list("What was measured", answer.findings),
        _table(options),
        _figure([option.over for option in options if option.over is not None]),
        _tag("p", answer.rule),
        f"<footer>CDP Studio {escape(__version__)}, {escape(when)}{_study(answer)}</footer>",
    ]

    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(answer.headline)}</title><style>{STYLE}</style>"
    )

    body = "\n".join(filter(None, parts))
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _tag(name: str, text: str, kind: str = "", *, inner: str = "") -> str:
    """Return an element with this text; empty where there is none. The ``kind`` is of the ``inner`` one, if any."""
    if not text:
        return ""
    about = f' class="{kind}"' if kind else ""
    if inner:
        return f"<{name}><{inner}{about}>{escape(text)}</{inner}></{name}>"
    return f"<{name}{about}>{escape(text)}</{name}>"


def _list(title: str, texts: Iterable[str]) -> str:
    items = _tags("li", texts)
    if not items:
        return ""
    return f"<h2>{title}</h2><ul>{items}</ul>"


def _tags(name: str, texts: Iterable[str]) -> str:
    return "".join(_tag(name, text) for text in texts)


def _table(options: Sequence[Option]) -> str:
    """The options with score, difference to the choice, price and training time."""
    if not options:
        return ""

    head = _tags("th", ("Option", "NDCG@10 (%)", "Points over the answer", "Price", "One training"))
    rows = [f"<tr>{head}</tr>"]

    for option in options:
        cells = [f"{cell:.1f}" if isinstance(cell, float) else cell or "–" for cell in option.cells]
        rows.append(f"<tr>{_tags('td', cells)}</tr>")

    return f'<h2>Options</h2><div class="wide"><table>{"".join(rows)}</table></div>'


def _figure(over: Sequence[ArmDifference]) -> str:
    """Differences to one option with their intervals, a row each, as SVG; empty without any."""
    if not over:
        return ""

    ends = [0.0]
    for c in over:
        ends += [c.low, c.high]

    low, high = min(ends), max(ends)
    scale = (WIDTH - NAMES - 2 * MARGIN) / (high - low or 1.0)

    def at(points: float) -> str:
        return f"{NAMES + MARGIN + (points - low) * scale:.1f}"

    height = ROW * (len(over) + 1)
    lines = [f'<line x1="{at(0)}" x2="{at(0)}" y1="0" y2="{height - ROW}" stroke="#7a8894" stroke-dasharray="4 3"/>']
    for number, c in enumerate(over):
        y = ROW * number + ROW // 2
        name = escape(c.option.name)
        lines += [
            f'<text x="0" y="{y + 4}" font-size="12">{name}</text>',
            f'<line x1="{at(c.low)}" x2="{at(c.high)}" y1="{y}" y2="{y}" stroke="#1d5f8a" stroke-width="2"/>',
            f'<circle cx="{at(c.points)}" cy="{y}" r="4" fill="#1d5f8a"/>',
        ]

    for end in (low, 0.0, high):
        if end == 0.0 or abs(end) * scale > 2 * MARGIN:  # not over the zero
            lines.append(
                f'<text x="{at(end)}" y="{height - 8}" font-size="12" text-anchor="middle">{signed(end, 1)}</text>'
            )

    against = escape(over[0].against.name)
    label = f"NDCG@10 points over {against}, with simultaneous 95% intervals"
    drawn = "".join(lines)

    return (
        f'<div class="wide"><svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}" '
        f'font-family="sans-serif">{drawn}</svg></div>'
        f'<p class="quiet">{label}.</p>'
    )


def _study(answer: Decision) -> str:
    if not answer.measured or not answer.basis:
        return ""
    return f", study {escape(answer.basis.study)}"
