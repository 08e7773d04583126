"""A table like a paper's: what is best as printed, what a mean covers, and that every format says the same."""

from __future__ import annotations

import pytest

from cdp.results.board import ResultRow
from cdp.results.differences import Comparison
from cdp.results.paper import Table, paper_table, to_latex, to_markdown

VALUES = {
    ("base", "hotpotqa"): 46.24,
    ("base", "musique"): 21.8,
    ("base", "2wikimultihopqa"): 32.0,
    ("base", "mine"): 40.9,
    ("trained", "hotpotqa"): 52.2,
    ("trained", "musique"): 34.9,
    ("trained", "2wikimultihopqa"): 42.3,
    ("trained", "mine"): 41.4,
    ("part_of & it", "hotpotqa"): 46.16,
    ("part_of & it", "musique"): 90.0,
}


def made(values: dict[tuple[str, str], float], significant: tuple[str, str] | None = None) -> Table:
    rows = [
        ResultRow(
            retriever=name, retriever_id=name, benchmark=benchmark,
            split="dev" if benchmark in ("musique", "2wikimultihopqa") else "test", protocol="published", version="",
            ndcg=value, n_queries=12, evaluation_id=f"{name}-{benchmark}", runs=(name,), kind="",
            start="", trained=None, badges=(), warnings=(), created="", measures={},
            p_holm=0.01 if (name, benchmark) == significant else None, n_clusters=12,
        )
        for (name, benchmark), value in values.items()
    ]  # fmt: skip
    return paper_table(Comparison("base", "base", rows, {}))


@pytest.fixture
def table() -> Table:
    return made(VALUES, ("trained", "musique"))


def cells(table: Table, retriever: str) -> dict[str, tuple[float | None, int, str]]:
    (found,) = [row for name, row in table.rows if name == retriever]
    return {c: (cell.value, cell.place, cell.remark) for c, cell in zip(table.columns, found, strict=True)}


def test_places_are_those_of_the_printed_numbers(table: Table) -> None:
    assert table.columns == (
        "hotpotqa", "musique dev", "2wikimultihopqa dev", "mine", "Multi-hop mean", "Mean (2 of 4)",
    )  # fmt: skip
    assert cells(table, "trained")["hotpotqa"][1] == 1
    # 46.24 and 46.16 both print as 46.2: both are second.
    assert cells(table, "base")["hotpotqa"][1] == 2
    assert cells(table, "part_of & it")["hotpotqa"][1] == 2
    assert cells(table, "base")["musique dev"][1] == 0


def test_a_partial_mean_carries_its_coverage_and_does_not_compete(table: Table) -> None:
    value, place, remark = cells(table, "part_of & it")["Multi-hop mean"]
    assert (round(value or 0, 2), place, remark) == (68.08, 0, "2/4")
    assert cells(table, "trained")["Multi-hop mean"][1:] == (0, "3/4")
    assert [cells(table, name)["Mean (2 of 4)"][1] for name in ("part_of & it", "trained", "base")] == [1, 2, 0]


def test_markdown(table: Table) -> None:
    lines = to_markdown(table).splitlines()
    assert lines[0].startswith("| NDCG@10 | hotpotqa | musique dev | 2wikimultihopqa dev | mine |")
    assert lines[4].startswith("| trained | **52.2** | <u>34.9</u>† | **42.3** | **41.4** | 43.1 (3/4) |")
    assert lines[3].startswith("| part\\_of &amp; it | <u>46.2</u> | **90.0** | – | – | 68.1 (2/4) |")
    assert lines[-1].startswith("† differs from base with p &lt; 0.05")


def test_latex(table: Table) -> None:
    text = to_latex(table)
    assert r"part\_of \& it & \underline{46.2} & \textbf{90.0} & -- & -- & 68.1 (2/4)" in text
    assert r"\underline{34.9}$^\dagger$" in text
    assert text.startswith("\\begin{tabular}{lrrrrrr}\n\\toprule")


def test_latex_prints_what_is_in_a_name_and_the_notes(table: Table) -> None:
    assert r"{\footnotesize $^\dagger$ differs from base with p \textless{} 0.05" in to_latex(table)
    name = "[a] \\ <b> | 50% *"
    odd = to_latex(made({(name, "x_1"): 1.0}))
    assert r"{[}a] \textbackslash{} \textless{}b\textgreater{} \textbar{} 50\% {*} & 1.0 \\" in odd
    assert r"NDCG@10 & x\_1 \\" in odd


def test_a_column_of_one_value_has_no_best() -> None:
    table = made({("a", "x"): 50.0, ("b", "y"): 40.0})
    assert cells(table, "a")["x"] == (50.0, 0, "")
