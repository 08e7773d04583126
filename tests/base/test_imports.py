"""A library is imported without its optional parts, and only for the thread that asks for that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

from cdp.base.imports import without


@pytest.mark.slow
def test_the_stemmer_comes_without_the_libraries_it_does_not_need() -> None:
    code = (
        "import sys; from cdp.evaluation.bm25 import english_terms; print(*english_terms(['Generously running']));"
        "print([name for name in ('sklearn', 'scipy.stats', 'pandas') if name in sys.modules]);"
        "import scipy.stats"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['generous', 'run']", "[]"]


@pytest.mark.slow
def test_a_module_is_loaded_when_one_of_its_functions_is_called() -> None:
    code = """
import sys
from cdp.base.imports import UNUSED_METRICS, load_when_called
for _ in range(2):
    load_when_called(UNUSED_METRICS)
from sentence_transformers.util import similarity
print([name for name in ("sklearn.base", "scipy.stats") if name in sys.modules])
print(similarity.pairwise_distances([[0.0, 1.0]], [[2.0, 4.0]], metric="manhattan").tolist())
from sklearn.metrics import f1_score, pairwise_distances
print(pairwise_distances is sys.modules["sklearn.metrics"].pairwise_distances, "sklearn.base" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[[5.0]]", "True True"]


@pytest.mark.slow
def test_another_part_of_a_module_that_is_put_off_is_loaded_with_all_of_it() -> None:
    code = """
from cdp.base.imports import load_when_called
load_when_called("sklearn.metrics")
from sklearn.metrics import f1_score
import sklearn
from sklearn import linear_model
import sklearn.cluster
print(sklearn.__version__ != "", linear_model.LinearRegression, f1_score([1, 0], [1, 0]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "<class", "'sklearn.linear_model._base.LinearRegression'>", "1.0"]


@pytest.mark.slow
def test_documents_are_stored_without_pandas_and_scipy(tmp_path: Path) -> None:
    documents = tmp_path / "documents.jsonl"
    documents.write_text(json.dumps({"_id": "d", "text": "Bees dance to tell the others where flowers are."}))
    code = (
        "import sys; from cdp.cli import main;"
        f"sys.argv = ['cdp', 'corpus', 'add', {str(documents)!r}];"
        "code = main(); print(code, [name for name in ('pandas', 'scipy', 'nltk', 'torch') if name in sys.modules])"
    )
    workspace = {**os.environ, "CDP_WORKSPACE": str(tmp_path / "workspace")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=workspace)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_other_threads_and_what_is_loaded_already_are_left_alone() -> None:
    found: list[str] = []

    def elsewhere() -> None:
        sys.modules.pop("this", None)
        import this  # noqa: F401

        found.append("this")

    with without("this", "json"):
        import json  # noqa: F401

        sys.modules.pop("this", None)
        with pytest.raises(ModuleNotFoundError, match="this"):
            import this  # noqa: F401
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert found == ["this"]


def test_what_others_import_meanwhile_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"found_by_all_{n}" for n in range(300)]
    for name in names:
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    interval, ended = sys.getswitchinterval(), threading.Event()
    sys.setswitchinterval(1e-6)

    def leave_out() -> None:
        while not ended.is_set():
            with without("nobody_has_this"):
                pass

    others = [threading.Thread(target=leave_out) for _ in range(2)]
    try:
        for other in others:
            other.start()
        assert [import_module(name).__name__ for name in names] == names
    finally:
        ended.set()
        for other in others:
            other.join()
        sys.setswitchinterval(interval)
        for name in names:
            sys.modules.pop(name, None)
