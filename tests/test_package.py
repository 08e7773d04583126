"""The package that others install: what is in it, and that it works from any folder with nothing of a clone."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import cdp
from cdp.base import registry
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from tests.support import REPOSITORY, free_port, in_background

PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(texts: list[str]) -> dict[str, Requirement]:
    """Requirements by their name, as package indexes compare names."""
    parsed = [Requirement(text) for line in texts if (text := line.partition("#")[0].strip()) and text[0] != "-"]
    return {requirement.name.lower().replace("_", "-"): requirement for requirement in parsed}


def test_what_is_pinned_is_what_the_package_asks_for() -> None:
    extras = PROJECT["optional-dependencies"]
    for file, wanted in {
        "requirements.txt": [*PROJECT["dependencies"], *extras["app"], *extras["languages"]],
        "requirements-cluster.txt": extras["cluster"],
        "requirements-dev.txt": [text for text in extras["dev"] if not text.startswith("cdp-studio[")],
    }.items():
        pinned = requirements((REPOSITORY / file).read_text(encoding="utf-8").splitlines())
        asked = requirements(wanted)
        assert set(pinned) == set(asked), file
        for name, pin in pinned.items():
            (version,) = pin.specifier
            assert version.version in asked[name].specifier, f"{file}: {name} {version.version}"


def test_windows_is_told_what_to_do() -> None:
    code = "import sys; sys.platform = 'win32'; import cdp"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert done.returncode == 1
    assert "On Windows, install it within WSL 2." in done.stderr.splitlines()[-1]


def test_every_library_that_is_imported_is_asked_for() -> None:
    """One that another library brings may go with its next version."""
    asked = requirements([*PROJECT["dependencies"], *(text for one in ("app", "languages") for text in
                          PROJECT["optional-dependencies"][one])])  # fmt: skip
    provided = packages_distributions()
    imported: dict[str, str] = {}
    for path in [REPOSITORY / "app.py", *(REPOSITORY / "cdp").rglob("*.py")]:
        for package in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            if package in provided and package != "cdp":
                imported[package] = path.name
    names = {name: {one.lower().replace("_", "-") for one in provided[name]} for name in imported}
    optional = {"ray", "pydantic_core", "annotated_types"}  # an extra of its own; parts of pydantic
    assert {name: imported[name] for name in names if not names[name] & set(asked) and name not in optional} == {}


def test_the_versions_of_python_are_those_that_the_classifiers_name() -> None:
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    accepted = SpecifierSet(PROJECT["requires-python"])
    assert [version for version in (f"3.{minor}" for minor in range(9, 30)) if version in accepted] == named


def test_the_citation_is_of_this_version() -> None:
    lines = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {cdp.__version__}" in lines


def test_an_installed_package_keeps_its_workspace_in_the_users_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CDP_WORKSPACE", raising=False)
    monkeypatch.setattr("cdp.base.workspace.INSTALLED", True)
    monkeypatch.setenv("HOME", str(tmp_path))
    for configured in ("", "relative"):
        monkeypatch.setenv("XDG_DATA_HOME", configured)
        assert Workspace.default().root == tmp_path / ".local" / "share" / "cdp-studio"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert Workspace.default().root == tmp_path / "data" / "cdp-studio"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that is built from it, as ``python -m build`` makes them."""
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    folder, unpacked = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("unpacked")
    (sdist,) = SdistBuilder(str(REPOSITORY)).build(directory=str(folder), versions=["standard"])
    shutil.unpack_archive(sdist, unpacked, filter="data")
    (source,) = unpacked.iterdir()
    list(WheelBuilder(str(source)).build(directory=str(folder), versions=["standard"]))
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of someone who installed the wheel and nothing else of ours, with a home of their own."""
    target, home = tmp_path_factory.mktemp("target"), tmp_path_factory.mktemp("home")
    (wheel,) = built.glob("*.whl")
    shutil.unpack_archive(wheel, target, "zip")  # as an installer does, which writes the script `cdp` besides
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CDP_", "XDG_"))}
    return {**kept, "HOME": str(home), "PYTHONPATH": str(target)}


def run(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "cdp", *words], capture_output=True, text=True, cwd=environment["HOME"], env=environment,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_wheel_and_sdist_hold_all_that_is_needed_at_run_time(built: Path) -> None:
    from twine.commands.check import check

    assert len(list(built.iterdir())) == 2
    assert not check(list(map(str, built.iterdir())), strict=True), "the index would refuse it"
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    folders = [REPOSITORY / "pages", *(path for path in (REPOSITORY / "data").iterdir() if path.name != "workspace")]
    shipped = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    shipped += [REPOSITORY / "app.py", REPOSITORY / ".streamlit" / "config.toml"]
    assert {f"cdp/shipped/{path.relative_to(REPOSITORY)}" for path in shipped} <= names
    code = {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "cdp").rglob("*.py")}
    assert code | {"cdp/py.typed", "cdp/ui/shell/assets/style.css"} <= names
    (entries,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
    assert "cdp = cdp.cli:main" in zipfile.ZipFile(wheel).read(entries).decode()
    assert not [name for name in names if name.startswith(("tests/", "perf/", "cdp/shipped/data/workspace"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("started", "number"), [(lambda *words: words, signal.SIGINT), (in_background, signal.SIGTERM)],
    ids=["until Ctrl-C", "in the background until SIGTERM"],
)  # fmt: skip
def test_cdp_app_serves_the_dashboard_on_this_machine_alone(
    installed: dict[str, str], started: Callable[..., Sequence[str]], number: int
) -> None:
    port = free_port()
    process = subprocess.Popen(
        started(sys.executable, "-m", "cdp", "app", "--port", str(port)), cwd=installed["HOME"], env=installed,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/compare", timeout=10) as answer:
                    assert answer.status == 200
                break
            except OSError:
                assert process.poll() is None, process.communicate()[0]
                assert time.monotonic() < deadline
                time.sleep(0.2)
        process.send_signal(number)
        told, _ = process.communicate(timeout=60)
    finally:
        process.terminate()
        process.wait(60)
    assert process.returncode == 130
    assert "Traceback" not in told
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)
    assert f"http://127.0.0.1:{port}" in told, "the settings beside app.py, which name the loopback, were not read"


@pytest.fixture(scope="module")
def extended(installed: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same with the template of docs/ installed, as a user does with a package of their own."""
    folder = tmp_path_factory.mktemp("template")
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(REPOSITORY / "docs" / "template")).build(directory=str(folder), versions=["standard"])
    shutil.unpack_archive(wheel, folder / "target", "zip")
    return {**installed, "PYTHONPATH": os.pathsep.join([str(folder / "target"), installed["PYTHONPATH"]])}


# In one process: to load the package takes longer than what it does then.
LOADED = """
import json
from cdp.cli import main
assert main(["demo"]) == 0
from cdp.base import registry as r
print(json.dumps({k: [*r.registry(k)] for k in r.HOMES}))
"""


@pytest.mark.slow
def test_an_installed_package_works_from_any_folder_and_another_adds_to_every_registry(
    installed: dict[str, str], extended: dict[str, str]
) -> None:
    target = Path(installed["PYTHONPATH"])

    def files() -> list[Path]:
        return [path for path in sorted(target.rglob("*")) if "__pycache__" not in path.parts]

    before = files()
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, env=extended, cwd=extended["HOME"]
    )
    assert done.returncode == 0, done.stderr
    assert "loaded: corpus demo-" in done.stdout
    assert (Path(installed["HOME"]) / ".local" / "share" / "cdp-studio" / "corpora").is_dir()
    assert files() == before, "something was written among the package's own files"
    names = json.loads(done.stdout.splitlines()[-1])
    own = {
        "method": "headline", "generator": "echo", "measure": "shouted", "weighting": "length", "corpus format": "bars",
        "export format": "lines", "preset": "tiny", "benchmark schema": "pairs",
        "job kind": "lengths",
    }  # fmt: skip
    assert set(own) == set(names)
    assert [kind for kind, name in own.items() if name not in names[kind]] == []


@pytest.mark.soak
@pytest.mark.slow
def test_the_command_line_runs_an_installed_method(extended: dict[str, str]) -> None:
    run(extended, "demo")
    words = ("--corpus", "demo", "--methods", "headline", "--generator", "echo", "--per-doc", "2")
    assert "headline: " in run(extended, "queries", "preview", *words)
    assert "cdp-template 0.1.0" in run(extended, "doctor")


def test_a_broken_package_is_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an installer leaves it: a module, and a folder of metadata that names it."""
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    facts = tmp_path / "broken_plugin-2.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 2.0\n")
    (facts / "entry_points.txt").write_text("[cdp.plugins]\nmine = broken\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry.installed_plugins.cache_clear()
    fresh = registry.Registry("nothing", registry.Registered, "cdp.retrievers.presets")
    try:
        with pytest.raises(ConfigError) as raised:
            list(fresh)
    finally:
        registry.installed_plugins.cache_clear()
    assert "The plug-in mine of broken-plugin 2.0 cannot be loaded: ModuleNotFoundError" in raised.value.message
    assert "pip uninstall broken-plugin" in raised.value.hint
