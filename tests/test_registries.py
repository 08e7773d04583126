"""One of each that users extend, from files outside the package: the command line runs it, and the pages offer it.

Each file is a whole extension: what it declares is all that there is of it. They are those of ``docs/template``, which
``tests/test_package.py`` installs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cdp.base.errors import ConfigError, NotFoundError
from cdp.base.registry import HOMES, Names, Registered, Registry, registry
from tests.support import REPOSITORY, install_plugins

TEMPLATE = REPOSITORY / "docs" / "template" / "cdp_template"
# What the template's preset loads; the tests put a tiny model there.
SOURCE = '"sentence-transformers/all-MiniLM-L6-v2"'

FILES = {kind: (TEMPLATE / f"{kind.replace(' ', '_')}.py").read_text(encoding="utf-8") for kind in HOMES}

DOCUMENTS = "a|Copper|Copper conducts heat\nb|Iron|Iron rusts in water\nc|Gold|Gold never rusts\n"
PAIRS = "1\tWhat conducts?\tCopper conducts heat\n2\tWhat rusts?\tIron rusts\n3\tWhat never rusts?\tGold does not\n"


def test_there_is_a_file_for_each_registry() -> None:
    assert set(FILES) == set(HOMES)
    for kind in HOMES:
        items = registry(kind)
        assert items.offered
        assert all(items[name].title and items[name].help for name in items)


def test_an_unknown_name_is_told_the_nearest_and_all_that_there_are() -> None:
    with pytest.raises(NotFoundError, match=r"Did you mean static-minilm\? There is: static-minilm, minilm, minilm-m"):
        registry("preset").named("static-miniln")


@dataclass(frozen=True)
class Letter(Registered):
    """A kind of which the product has none."""


def test_names_are_taken_once_can_be_typed_and_come_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)

    def letters(package: str, **modules: str) -> Registry[Letter]:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        for name, text in modules.items():
            imports = "from tests.test_registries import Letter\n"
            (tmp_path / package / f"{name}.py").write_text(imports + text, encoding="utf-8")
        return Registry("letter", Letter, package)

    two = 'B = Letter("b", "B", "", order=1)\nC = Letter("c", "C", "", order=1, offered=False)\n'
    kept = letters("letters", one='A = Letter("a", "A", "")\n', two=f"from letters.one import A\n{two}")
    assert (list(kept), kept.offered) == (["b", "c", "a"], ["b", "a"])

    twice = letters("twice", one='A = Letter("a", "A", "")\n', three='A = Letter("a", "Another", "")\n')
    with pytest.raises(ConfigError, match=r"Two letters are called a: in \S+one.py and in \S+three.py"):
        list(twice)
    for position, name in enumerate(("", "../a", "A", "a b", "-a")):
        with pytest.raises(ConfigError, match=r"in \S+one.py. It needs a name of small letters"):
            list(letters(f"invalid{position}", one=f'A = Letter({name!r}, "A", "")\n'))


def test_the_choices_of_a_setting_are_read_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names("weighting", first=("auto",), leave_out=("column",))
    assert list(names) == ["auto", "none", "cw", "cw-question-words", "words", "rarity", "ri", "ri-cw"]
    weightings = registry("weighting")
    monkeypatch.setattr(weightings, "_items", {"none": weightings["none"]})
    assert list(names) == ["auto", "none"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of an operator who has a plug-in of each kind, and a corpus, a set and a benchmark from them."""
    folder = tmp_path_factory.mktemp("plugins")
    modules = [f"my_{kind.replace(' ', '_')}" for kind in FILES]
    for module, text in zip(modules, FILES.values(), strict=True):
        (folder / f"{module}.py").write_text(text.replace(SOURCE, repr(str(folder / "model"))), encoding="utf-8")
    install_plugins(folder, *modules)
    (folder / "metals.bars").write_text(DOCUMENTS, encoding="utf-8")
    (folder / "pairs.tsv").write_text(PAIRS, encoding="utf-8")
    return {
        **os.environ,
        "PYTHONPATH": str(folder),
        "CDP_WORKSPACE": str(folder / "workspace"),
        "CDP_ALLOWED_FOLDERS": str(folder),
        "FOLDER": str(folder),
    }


def python(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=REPOSITORY, env=environment, timeout=600
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def cdp(environment: dict[str, str], *words: str) -> Any:
    return json.loads(python(environment, "-m", "cdp", *words, "--json"))


def writing(environment: dict[str, str]) -> list[tuple[str, ...]]:
    """Documents in a format of one's own, and queries by a method and a generator of one's own."""
    generate = ("--method", "headline", "--generator", "echo", "--per-doc", "2", "--wait")
    return [
        ("corpus", "add", f"{environment['FOLDER']}/metals.bars"),
        ("queries", "generate", "--corpus", "metals", *generate),
        ("queries", "list"),
    ]


@pytest.mark.soak
def test_the_command_line_runs_one_of_each(environment: dict[str, str]) -> None:
    from tests.support_models import tiny_bert  # it loads torch

    corpus, _, (query_set,) = (cdp(environment, *words) for words in writing(environment))
    folder = Path(environment["FOLDER"])
    tiny_bert(folder / "model")
    assert (corpus["n_documents"], corpus["formats"]) == (3, ["bars"])
    assert (query_set["method"], query_set["generator"], query_set["n_queries"]) == ("headline", "echo", 6)

    measures = cdp(environment, "metrics", query_set["id"], "--quick")["measures"]
    assert [m["value"] for m in measures if m["name"] == "shouted"] == [1.0]

    cdp(environment, "queries", "export", query_set["id"], "--format", "lines", "--out", str(folder / "lines.txt"))
    assert (folder / "lines.txt").read_text().splitlines()[:2] == ["headline: Copper!", "headline: conducts!"]

    cdp(environment, "benchmarks", "download", "metals", "--folder", str(folder), "--wait")
    stored = Path(environment["CDP_WORKSPACE"]) / "benchmarks" / "metals"
    assert (stored / "qrels" / "test.tsv").read_text().split() == [
        "query-id",
        "corpus-id",
        "score",
        "1",
        "d1",
        "1",
        "2",
        "d2",
        "1",
        "3",
        "d3",
        "1",
    ]

    settings = ("--weighting", "length", "--set", "batch_size=3", "--set", "epochs=1", "--wait")
    job = cdp(environment, "train", query_set["id"], "--retriever", "tiny", *settings)
    assert job["state"] == "finished"
    card = next(Path(environment["CDP_WORKSPACE"]).glob("jobs/*/model/README.md")).read_text()
    assert "weighting **length**, on" in card


# One process for all: to start one takes longer than the commands, the job and the pages together.
PAGES = """
import contextlib, functools, io, json, sys
from streamlit.components.v2 import manifest_scanner
from cdp.cli import main
from cdp import jobs
from tests.pages.opening import opened
from tests.support import supervise

manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)
jobs._start_supervisor = supervise
answers = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as told:
        assert main([*words, "--json"]) == 0, words
    answers.append(json.loads(told.getvalue()))
CORPUS, QUERY_SET = answers[0]["id"], answers[2][0]["id"]
assert main(["queries", "export", QUERY_SET, "--format", "lines", "--out", sys.argv[2]]) == 0

def options(at, key):
    return list(at.get_by_key(key).options)

corpus = opened("documents", {})
queries = opened("queries", {"corpus": CORPUS})
exports = opened("queries/review", {"query_set": QUERY_SET})
launch = opened("launch", {"query_set": QUERY_SET})
quality = opened("queries/quality", {"sets": [QUERY_SET]})
benchmarks = opened("benchmarks", {})
frames = lambda at: [str(c) for d in at.dataframe for c in d.value.columns]
print(json.dumps({
    "written": [answers[2][0][key] for key in ("method", "generator", "n_queries")],
    "corpus format": options(corpus, "read_format"),
    "export format": options(exports, "export_format"),
    "all": {
        name: [str(o) for kind in ("selectbox", "segmented_control", "multiselect", "radio", "pills")
               for w in at.get(kind) for o in getattr(w, "options", [])]
        for name, at in {"queries": queries, "launch": launch, "benchmarks": benchmarks}.items()
    },
    "measure": frames(quality),
}))
"""


@pytest.mark.slow
def test_the_pages_offer_one_of_each(environment: dict[str, str]) -> None:
    """In a dashboard of its own, as an operator starts it: the plug-ins are named before it is."""
    lines = Path(environment["FOLDER"]) / "pages.txt"
    told = python(environment, "-c", PAGES, json.dumps(writing(environment)), str(lines))
    assert lines.read_text().splitlines()[:2] == ["headline: Copper!", "headline: conducts!"]
    offered = json.loads(told.strip().splitlines()[-1])
    assert offered["written"] == ["headline", "echo", 6]
    assert "bars" in offered["corpus format"]
    assert "lines" in offered["export format"]
    assert {"Headline", "Echo"} <= set(offered["all"]["queries"])
    assert {"Length", "Tiny BERT"} <= set(offered["all"]["launch"])
    assert "Metals" in offered["all"]["benchmarks"]
    assert "Shouted ↓" in offered["measure"]


BAD = {
    "raise RuntimeError('broken')": "RuntimeError: broken",
    FILES["generator"].replace('"echo", "Echo"', '"template", "Echo"'): "Two generators are called template",
}
# Each plug-in in a copy of one process that has loaded the command line.
BAD_PLUGINS = """
import json, os, sys
from cdp.cli import main
for folder in json.loads(sys.argv[1]):
    if os.fork() == 0:
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{folder}/{name}", os.O_CREAT | os.O_WRONLY), stream)
        sys.path.insert(0, folder)
        code = main(["queries", "generate", "--corpus", "x"])
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.slow
def test_a_plug_in_that_cannot_be_loaded_is_named_in_one_line(tmp_path: Path) -> None:
    folders = []
    for number, text in enumerate(BAD):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "bad.py").write_text(text)
        install_plugins(folder, "bad")
        folders.append(str(folder))
    environment = {**os.environ, "CDP_WORKSPACE": str(tmp_path / "workspace")}
    assert python(environment, "-c", BAD_PLUGINS, json.dumps(folders)).split() == ["2"] * len(BAD)
    for folder, told in zip(folders, BAD.values(), strict=True):
        assert Path(folder, "out").read_text() == ""
        error = Path(folder, "err").read_text()
        assert len(error.strip().splitlines()) == 1
        assert told in error
