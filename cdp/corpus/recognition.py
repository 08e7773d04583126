"""Scanned pages recognised by OCRmyPDF and Tesseract, where the machine has them: languages, limits, remedies."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cdp.base.errors import some
from cdp.base.machine import n_processors
from cdp.base.text import counted
from cdp.complexity.guessing import UNKNOWN, guess_language

# A page takes some three seconds; tables of small print, or several languages, take more.
PAGE_S = 30
MAX_PAGES = 200
# Language packs that are tried together where the document's language is not known: each takes its time on each page.
MAX_PACKS = 3
NO_LANGUAGE = ("osd", "equ", "snum")

# Tesseract's names of languages, by ISO 639-1.
PACKS: Mapping[str, str] = {
    "ar": "ara", "bg": "bul", "bn": "ben", "ca": "cat", "cs": "ces", "da": "dan", "de": "deu", "el": "ell",
    "en": "eng", "es": "spa", "et": "est", "fa": "fas", "fi": "fin", "fr": "fra", "he": "heb", "hi": "hin",
    "hr": "hrv", "hu": "hun", "hy": "hye", "id": "ind", "it": "ita", "ja": "jpn", "ka": "kat", "ko": "kor",
    "lt": "lit", "lv": "lav", "nb": "nor", "nl": "nld", "no": "nor", "pl": "pol", "pt": "por", "ro": "ron",
    "ru": "rus", "sk": "slk", "sl": "slv", "sr": "srp", "sv": "swe", "sw": "swa", "ta": "tam", "te": "tel",
    "th": "tha", "tr": "tur", "uk": "ukr", "ur": "urd", "vi": "vie", "yo": "yor", "zh": "chi_sim",
}  # fmt: skip


def program() -> str:
    """The path of OCRmyPDF, from this environment or the machine's; empty where there is none."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return shutil.which("ocrmypdf", path=path) or ""


def packs() -> list[str]:
    """The languages that Tesseract has, by its own names; none where it is not installed."""
    tesseract = shutil.which("tesseract")
    if tesseract is None:
        return []
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run([tesseract, "--list-langs"], capture_output=True, text=True, timeout=PAGE_S)
        # Its first line is a sentence.
        return [name for name in done.stdout.split("\n")[1:] if name and name not in NO_LANGUAGE]
    return []


def remedy() -> str:
    """What to install for scanned pages to be read; empty where they are."""
    wanted = []
    if not program():
        wanted.append("OCRmyPDF (pip install 'cdp-studio[ocr]')")
    if not packs():
        wanted.append("Tesseract (Debian: apt-get install tesseract-ocr)")
    return f"run OCR first, or install {' and '.join(wanted)}" if wanted else ""


def languages_for(text: str, chosen: str, installed: Sequence[str]) -> tuple[str, str]:
    """(languages as Tesseract takes them, what is missing in words).

    They are those chosen, else the language of the document's other text, else the first that are installed.
    """
    names = [name.strip() for name in chosen.replace(",", "+").split("+")] if chosen else [guess_language(text)]
    known = [] if names == [UNKNOWN] else names
    wanted = [PACKS.get(name, name) for name in known if chosen or name in PACKS]
    found = [name for name in wanted if name in installed] or installed[:MAX_PACKS]

    told = ""
    if missing := [name for name in wanted if name not in installed]:
        package = f"tesseract-ocr-{missing[0].replace('_', '-')}"
        told = f"Tesseract has no {', '.join(missing)} (Debian: {package})"
    return "+".join(found), told


def recognised(document: Any, pages: Sequence[int], languages: str) -> dict[int, list[str]]:
    """The lines of some pages of an open PDF, by their indices. A page that cannot be recognised is missing.

    ``document`` is pypdfium2's. An empty line stands between paragraphs.
    """
    import pypdfium2

    with tempfile.TemporaryDirectory(prefix="cdp-ocr-") as name:
        source, target = Path(name) / "pages.pdf", Path(name) / "pages.txt"
        # Without the other pages, and without a password.
        with pypdfium2.PdfDocument.new() as chosen:
            chosen.import_pages(document, list(pages))
            chosen.save(source)
        command = [
            program(), "--force-ocr", "--rotate-pages", "--output-type", "none", "--sidecar", str(target), "--quiet",
            "--jobs", str(n_processors()), "--language", languages,
            "--tesseract-timeout", str(PAGE_S), str(source), "-",
        ]  # fmt: skip
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=seconds(len(pages)), preexec_fn=_end_with_parent, cwd=name,
                env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            )  # fmt: skip
        texts = target.read_text("utf-8", "replace").split("\f") if target.exists() else []
    lines = ([line.strip() for line in text.split("\n")] for text in texts)
    return {page: found for page, found in zip(pages, lines, strict=False) if any(found)}


def seconds(pages: int) -> float:
    """The most time that so many pages may take."""
    return PAGE_S * (pages + 1)


def _end_with_parent() -> None:
    """End this process with its parent, which is ended where a file takes too long."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def noted(n_pages: int, pages: Sequence[int], text: str) -> str:
    """A sentence about pages, by their indices."""
    return f"{len(pages):,} of {counted(n_pages, 'page')} {text}: {some([str(page + 1) for page in pages])}"
