"""The documentation as a site: it builds without a warning, and every link leads somewhere and not elsewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.support import REPOSITORY


def build_site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_site", REPOSITORY / "docs" / "build_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks its own module up
    spec.loader.exec_module(module)
    return module


def test_the_menu_names_every_page_once() -> None:
    def pages(entry: object) -> list[str]:
        if isinstance(entry, dict | list):
            return [page for part in (entry.values() if isinstance(entry, dict) else entry) for page in pages(part)]
        return [str(entry)]

    settings = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    documents = REPOSITORY / "docs"
    written = [str(path.relative_to(documents)) for path in documents.rglob("*.md")]
    written = [name for name in written if not name.startswith("reproduction/")]  # its own page names its reports
    assert sorted(pages(settings["nav"])) == sorted(written)


@pytest.mark.soak
def test_the_site_builds_and_every_link_of_it_leads_somewhere() -> None:
    done = subprocess.run(
        [sys.executable, "docs/build_site.py"], cwd=REPOSITORY, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = len(list((REPOSITORY / "docs").rglob("*.md"))) + 1  # and the page that stands for a missing one
    assert f"{pages} pages, " in done.stdout


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "findings/README.md"])
def test_the_pages_beside_the_site_name_files_and_targets_that_exist(page: str) -> None:
    path = REPOSITORY / page
    text = path.read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []

    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    asked = re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", text, re.MULTILINE)
    assert [name for pair in asked for name in pair if name and f"\n{name}:" not in makefile] == []


def test_what_the_builder_lets_pass_is_told(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<link href="https://fonts.example.org/a.css"><h2 id="here"></h2><a href="#here"></a>'
        '<a href="other.html#there"></a><img src="none.png"><a href="https://example.org">',
        encoding="utf-8",
    )
    (tmp_path / "other.html").write_text("", encoding="utf-8")
    (tmp_path / "lonely.html").write_text("", encoding="utf-8")
    (tmp_path / "style.css").write_text("a { background: url(//example.org/a.png) }", encoding="utf-8")
    pages, links, wrong = build_site().check(tmp_path)
    assert (pages, links) == (3, 3)
    assert wrong == [
        "index.html: link is fetched from fonts.example.org",
        "index.html: there is no other.html#there",
        "index.html: there is no none.png",
        "lonely.html: no link leads to it",
        "style.css fetches from elsewhere",
    ]
