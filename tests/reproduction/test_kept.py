"""What is kept of a study is enough to make everything again, and it is younger than its plan and criteria."""

from __future__ import annotations

import ast
import contextlib
import functools
import gzip
import hashlib
import io
import json
import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdp.base.errors import InputError
from reproduction import criteria, document, kept, stages, upper_layers
from reproduction.kept import ENDING
from tests.reproduction.support import N_QUERIES, SETS, study
from tests.studies.support import made
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

DOCS = REPOSITORY / "docs"
FILES = sorted((DOCS / document.FOLDER).glob(f"*{ENDING}"))
BYTES = 2_000_000


def truth(name: str, source: str, per_doc: int, weighting: str) -> float:
    return (1 + 0.2 * SETS[name]) * source.startswith("diverse")


def test_a_kept_study_gives_the_gains_that_were_measured(tmp_path: Path) -> None:
    read = study(tmp_path, truth)
    assert read.lacking == ""
    again = json.loads(gzip.decompress((tmp_path / f"recorded-contrast{ENDING}").read_bytes()))
    assert all(isinstance(score, int) for own in again["scores"] for row in own["rows"] for score in row)
    about, records = made(truth, benchmarks=SETS, kinds=("diverse on one", "paraphrase on one"), n_queries=N_QUERIES)
    for number, record in enumerate(records):
        record["key"] = str(number)
    part = kept.packed({"about": about}, records)
    assert part == kept.packed({"about": about}, records[::-1]), "the same bytes in whichever order they are listed"
    measured = {(g.condition, g.benchmark, g.comparison): g.points for g in read.report.gains}
    assert measured
    for g in read.scores.gains:
        assert g.points == pytest.approx(measured[g.condition, g.benchmark, g.comparison])


def test_scores_are_kept_to_four_decimals(tmp_path: Path) -> None:
    about, records = made(truth, benchmarks=SETS, kinds=("human",), n_queries=N_QUERIES)
    for number, record in enumerate(records):
        record["key"] = f"{number:03d}"
    whole = {"id": "study-x", "state": "finished", "frozen": {}, "limits": ["Leaked: all."], "about": about}
    (tmp_path / f"single-query{ENDING}").write_bytes(kept.packed(whole, records))
    read = kept.read(tmp_path, [stages.Stage("single-query", 1), stages.Stage("recorded-minilm", 1)])
    assert list(read) == ["single-query"]
    assert read["single-query"].report.limits[0] == "Leaked: all."
    scores = read["single-query"].scores.scores
    for record in records:
        about_it = record["condition"]
        if about_it is not None:
            condition = next(c for c in scores if (c.source, c.per_doc) == (about_it["source"], about_it["per_doc"]))
            evaluation = record["evaluations"]["place-set3"]
            by_query = dict(zip(evaluation["query_ids"], evaluation["ndcg@10"], strict=True))
            expected = [100 * by_query[query] for query in sorted(by_query)]
            assert scores[condition]["set3"][about_it["seed"]] == pytest.approx(expected, abs=0.00501)


@pytest.mark.parametrize("damage", ["", "no gzip", "{}", '{"trainings": 3}'])
def test_a_damaged_file_is_told(tmp_path: Path, damage: str) -> None:
    data = gzip.compress(damage.encode()) if "{" in damage else damage.encode()
    (tmp_path / f"single-query{ENDING}").write_bytes(data)
    with pytest.raises(InputError, match="is not what a reproduction keeps"):
        kept.read(tmp_path, [stages.Stage("single-query", 1)])


def printed(page: Path) -> tuple[dict[str, str], dict[str, str]]:
    """({judged set: points} as the lines in the document print them, and as its table has them)."""
    text = page.read_text(encoding="utf-8").partition(f"## Claim {document.RECOMPUTED} once more")[2]
    code = re.search(r"```python\n(.*?)```", text, re.S)
    assert code is not None
    roots = {name.name for node in ast.walk(ast.parse(code[1])) if isinstance(node, ast.Import) for name in node.names}
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(ast.parse(code[1])))
    assert roots == {"gzip", "json", "statistics"}, "it shares nothing with the package"
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.chdir(page.parent.parent):
        exec(code[1], {})
    rows = re.findall(r"^\| (\S+) +\| ([+-]\S+) +\|$", text, re.M)
    return dict(re.findall(r"^\| (\S+) \| ([+-]\S+) \|$", out.getvalue(), re.M)), dict(rows)


@pytest.mark.soak
def test_the_lines_in_the_document_print_its_table(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / document.FOLDER
    study(folder, truth, weightings="none, cw", design="documents and pairs", max_documents=50)
    chosen = [stages.Stage("recorded-contrast", 1)]
    page = document.write(kept.read(folder, chosen), chosen, tmp_path / "docs")
    lines, table = printed(page)
    assert lines == table
    assert set(table) == set(SETS)
    if f"## Claim {document.RECOMPUTED} once more" in (DOCS / document.NAME).read_text(encoding="utf-8"):
        lines, table = printed(DOCS / document.NAME)
        assert lines == table
        assert len(table) > 5


def git(*words: object) -> str:
    done = subprocess.run(["git", *map(str, words)], cwd=REPOSITORY, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def brought() -> dict[tuple[str, str], int]:
    """{(file, id of its content): the number of the commit that brought it}; an ancestor has a lower number."""
    words = ("--topo-order", "--reverse", "--raw", "--no-abbrev", "--no-renames", "--format=tformat:commit")
    found: dict[tuple[str, str], int] = {}
    number = 0
    for line in git("log", *words, "--", DOCS / document.FOLDER, criteria.PLANS).splitlines():
        number += line == "commit"
        if line.startswith(":"):
            facts, _, path = line.partition("\t")
            found.setdefault((path, facts.split()[3]), number)
    return found


@pytest.fixture(scope="module")
def digests() -> Callable[[str], dict[str, str]]:
    """{claim: digest of its criterion} of the claims as they were at an id."""

    @functools.cache
    def read(claims: str) -> dict[str, str]:
        with tempfile.NamedTemporaryFile(suffix=".yaml") as then:
            then.write(git("cat-file", "blob", claims).encode())
            then.flush()
            return {claim.id: claim.digest for claim in criteria.read(Path(then.name))}

    return read


@functools.cache
def kept_study(file: Path) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return {"frozen": whole["frozen"], "about": whole["about"]}


def in_git(file: Path) -> str:
    """The id that git has for the content of a file."""
    data = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@pytest.mark.skipif(
    shutil.which("git") is None or git("rev-parse", "--is-shallow-repository") != "false",
    reason="the history says what is older",
)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_plans_and_criteria_are_older_than_their_results(
    file: Path, brought: dict[tuple[str, str], int], digests: Callable[[str], dict[str, str]]
) -> None:
    frozen = kept_study(file)["frozen"]
    # What is not committed yet comes after every commit.
    results = brought.get((str(file.relative_to(REPOSITORY)), in_git(file)), math.inf)
    kept_as = file.name.removesuffix(ENDING)
    plan = criteria.PLANS / f"{upper_layers.PLAN if kept_as.startswith(upper_layers.PLAN) else kept_as}.yaml"
    for source, name in ((plan, "plan"), (criteria.FILE, "claims")):
        first = brought.get((str(source.relative_to(REPOSITORY)), frozen[name]))
        assert first is not None, f"no commit has the {name} of {file.name}"
        assert first < results, f"the {name} of {file.name} is no older than its results"
    then = digests(frozen["claims"])
    assert {name: then[name] for name in frozen["criteria"]} == frozen["criteria"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_kept_study_is_small_and_names_who_wrote_its_queries(file: Path) -> None:
    assert file.stat().st_size <= BYTES
    study = kept_study(file)
    config, sources = study["about"]["config"], study["about"]["sources"]
    assert sources
    assert all(source["written_by"] for source in sources)
    if not config.get("methods"):
        assert {source["written_by"] for source in sources} == {"people"}
        assert "generator" not in config
    if config.get("generator") != "openai":
        assert "model" not in config
    if config.get("generator") == "recorded":
        assert all("whose name was not recorded" in s["written_by"] for s in sources if s["written_by"] != "people")
