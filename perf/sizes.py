"""The table of sizes in docs/SCALING.md: bytes follow from formats, so they hold for any machine.

python -m perf.sizes
"""

from __future__ import annotations

import math

DOCUMENTS = {"8 thousand": 8e3, "80 thousand": 8e4, "8.8 million": 8.8e6, "1 billion": 1e9}
CHARACTERS, PER_DOC, DIMENSIONS = 600, 5, 768

ID = 24  # bytes that an import remembers of each id (corpus/seen.py)
LINE, QUERY = 130, 72  # a line of queries.jsonl without its queries; a query of usual length
STRING = 49  # CPython's share of a text of one byte per character

ROWS = {
    "text": lambda n: _bytes(n * CHARACTERS),
    f"ids while reading ({ID} bytes)": lambda n: _bytes(n * ID),
    f"queries on disk ({LINE} bytes + {QUERY} per query)": lambda n: _bytes(n * (LINE + QUERY * PER_DOC)),
    f"embeddings in half precision, as a GPU computes them ({DIMENSIONS} × 2 bytes)": lambda n: _bytes(
        n * DIMENSIONS * 2
    ),
    f"embeddings of a CPU ({DIMENSIONS} × 4 bytes)": lambda n: _bytes(n * DIMENSIONS * 4),
    f"texts in memory in an evaluation (+ {STRING} bytes each)": lambda n: _bytes(n * (CHARACTERS + STRING)),
    "an endpoint's requests, one per document": lambda n: _count(n),
    "pairs of one epoch": lambda n: _count(n * PER_DOC),
}


def table() -> str:
    """Return the table as Markdown."""
    lines = [f"| | {' | '.join(DOCUMENTS)} |", "|---" * (1 + len(DOCUMENTS)) + "|"]
    lines += [f"| {name} | {' | '.join(cell(n) for n in DOCUMENTS.values())} |" for name, cell in ROWS.items()]
    return "\n".join(lines)


def _bytes(n: float) -> str:
    power = min(4, int(math.log10(n)) // 3)
    return f"{_rounded(n / 1000**power)} {('B', 'kB', 'MB', 'GB', 'TB')[power]}"


def _count(n: float) -> str:
    for limit, name in ((1e9, "billion"), (1e6, "million")):
        if n >= limit:
            return f"{_rounded(n / limit)} {name}"
    return f"{n:,.0f}"


def _rounded(value: float) -> str:
    """Two significant digits below ten, whole numbers above."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


if __name__ == "__main__":
    print(table())
