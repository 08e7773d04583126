"""Tables: what is best, what is second, what is missing, and that every format says the same."""

from __future__ import annotations

import pytest

from cdp.services.result_tables import Table, comparison_table, to_latex, to_markdown

GROUPS = {"Multi-hop": ["hotpotqa", "musique", "2wiki"], "Other": ["scifact"]}
VALUES = {
    ("base", "hotpotqa"): 46.24,
    ("base", "musique"): 21.8,
    ("base", "2wiki"): 32.0,
    ("base", "scifact"): 40.9,
    ("trained", "hotpotqa"): 52.2,
    ("trained", "musique"): 34.9,
    ("trained", "2wiki"): 42.3,
    ("trained", "scifact"): 41.4,
    ("part_of & it", "hotpotqa"): 46.16,
    ("part_of & it", "musique"): 90.0,
}


@pytest.fixture
def table() -> Table:
    return comparison_table(
        VALUES,
        retrievers=["base", "trained", "part_of & it"],
        groups=GROUPS,
        daggers={("trained", "musique")},
        notes=["p < 0.05 after Holm"],
    )


def cells(table: Table, retriever: str) -> dict[str, tuple[float | None, int, str]]:
    (found,) = [row for name, row in table.rows if name == retriever]
    return {c: (cell.value, cell.place, cell.coverage) for c, cell in zip(table.columns, found, strict=True)}


def test_places_are_those_of_the_printed_numbers(table: Table) -> None:
    assert table.columns == ("hotpotqa", "musique", "2wiki", "Multi-hop mean", "scifact")
    assert cells(table, "trained")["hotpotqa"][1] == 1
    # 46.24 and 46.16 both print as 46.2: both are second.
    assert cells(table, "base")["hotpotqa"][1] == 2
    assert cells(table, "part_of & it")["hotpotqa"][1] == 2
    assert cells(table, "base")["musique"][1] == 0


def test_a_partial_mean_carries_its_coverage_and_does_not_compete(table: Table) -> None:
    value, place, coverage = cells(table, "part_of & it")["Multi-hop mean"]
    assert (round(value or 0, 2), place, coverage) == (68.08, 0, "2/3")
    assert cells(table, "trained")["Multi-hop mean"][1:] == (1, "")


def test_markdown(table: Table) -> None:
    lines = to_markdown(table).splitlines()
    assert lines[0] == "| NDCG@10 | hotpotqa | musique | 2wiki | Multi-hop mean | scifact |"
    assert lines[3] == "| trained | **52.2** | <u>34.9</u>† | **42.3** | **43.1** | **41.4** |"
    assert lines[4] == "| part\\_of &amp; it | <u>46.2</u> | **90.0** | – | 68.1 (2/3) | – |"
    assert lines[-1] == "† p &lt; 0.05 after Holm"


def test_latex(table: Table) -> None:
    text = to_latex(table)
    assert r"part\_of \& it & \underline{46.2} & \textbf{90.0} & -- & 68.1 (2/3) & -- \\" in text
    assert r"\underline{34.9}$^\dagger$" in text
    assert text.startswith("\\begin{tabular}{lrrrrr}\n\\toprule")


def test_latex_prints_what_is_in_a_name_and_the_notes(table: Table) -> None:
    text = to_latex(table)
    assert r"{\footnotesize $^\dagger$ p \textless{} 0.05 after Holm\par}" in text
    name = "[a] \\ <b> | 50% *"
    odd = to_latex(comparison_table({(name, "x_1"): 1.0}, retrievers=[name], groups={"g": ["x_1"]}))
    assert r"{[}a] \textbackslash{} \textless{}b\textgreater{} \textbar{} 50\% {*} & 1.0 \\" in odd
    assert r"NDCG@10 & x\_1 \\" in odd


def test_a_dataset_of_two_groups_has_one_column_and_counts_in_both_means() -> None:
    values = {("a", "x"): 50.0, ("a", "y"): 30.0, ("a", "z"): 10.0}
    table = comparison_table(values, retrievers=["a"], groups={"g": ["x", "y"], "h": ["x", "z"]})
    assert table.columns == ("x", "y", "g mean", "z", "h mean")
    assert [cell.value for cell in table.rows[0][1]] == [50.0, 30.0, 40.0, 10.0, 30.0]


def test_a_column_of_one_value_has_no_best() -> None:
    table = comparison_table({("a", "x"): 50.0}, retrievers=["a", "b"], groups={"x": ["x"]})
    assert cells(table, "a")["x"] == (50.0, 0, "")
