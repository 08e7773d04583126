"""The house's rules, held by reading the code: who imports whom, and what importing the app may load."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import cdp
from tests.support import REPOSITORY

CDP = REPOSITORY / "cdp"

# What every room may import; it imports no room.
BASE = {"base", "__init__"}

# Each reads nouns and writes nouns; none imports another.
STAGES = {"synthesis", "metrics", "training", "evaluation"}

LAYERS: dict[str, set[str]] = {
    "base": set(),
    "jobs": BASE,
    "catalog": BASE,
    "complexity": BASE,
    "principle": BASE | {"complexity"},
    "llm": BASE,
    "projects": BASE,
    "corpus": BASE | {"complexity"},
    "query_sets": BASE | {"corpus", "complexity"},
    "benchmarks": BASE | {"corpus", "complexity"},
    "retrievers": BASE | {"llm", "corpus", "query_sets", "benchmarks", "complexity"},
    "synthesis": BASE | {"llm", "corpus", "query_sets", "retrievers", "complexity"},
    "metrics": BASE | {"corpus", "query_sets", "retrievers", "complexity"},
    "training": BASE | {"corpus", "query_sets", "benchmarks", "retrievers", "complexity"},
    "evaluation": BASE | {"benchmarks", "retrievers", "complexity"},
    "serving": BASE | {"jobs", "corpus", "benchmarks", "retrievers", "evaluation", "complexity"},
    "studies": BASE | STAGES | {"llm", "corpus", "query_sets", "benchmarks", "retrievers", "complexity", "principle"},
}
LAYERS["workers"] = BASE | set(LAYERS) - {"catalog", "projects", "jobs"}
# What became of runs, for people: it reads what jobs, stages and studies left behind.
LAYERS["results"] = LAYERS["studies"] | {"studies", "jobs", "catalog"}
# Everything below the user's actions. Workers are started by name and never imported.
ROOMS = set(LAYERS) - {"workers"}

# Rooms that compute and know no workspace.
PURE = {"principle", "complexity"}

# Rooms and files that faces may call without a service between: they compute, or read of the workspace what anybody who
# may look may see. None of them writes (``test_what_faces_call_writes_nothing``), and a path that a person named is
# checked where it is opened (``permission.to_read``).
OPEN = PURE | {"results"}
OPEN_FILES = {
    "corpus.looking", "evaluation.labelling", "llm.prices", "query_sets.usable", "retrievers.leakage",
    "retrievers.sending", "studies.advice", "studies.config", "studies.own_test",
    "studies.target_queries", "studies.text", "synthesis.candidates", "synthesis.pricing",
    "training.plan",
}  # fmt: skip

# Of every other file they may import records: classes and constants (names with a capital), never a function. What
# changes a workspace, starts a job or asks a model goes through services, which hold who may do what.
FACES = {"ui", "cli", "charts", "notebook"}

LAYERS["services"] = BASE | ROOMS
LAYERS["charts"] = BASE | OPEN | {"studies"}
LAYERS["ui"] = BASE | OPEN | {"services", "charts"}
LAYERS["cli"] = BASE | OPEN | {"services", "charts"}
LAYERS["notebook"] = BASE | OPEN | {"services", "charts"}
LAYERS["__main__"] = {"cli"}

# Files of nouns and results, and the only rooms that write or read files of that name.
OWNERS: dict[str, set[str]] = {
    "queries.jsonl": {"query_sets", "benchmarks"},
    "rankings.jsonl": {"query_sets"},
    "corpus.jsonl": {"benchmarks"},
    "documents.parquet": {"corpus"},
    "manifest.json": {"corpus", "query_sets", "benchmarks", "retrievers"},
    "project.json": {"projects"},
    "modules.json": {"retrievers"},
    "README.md": {"retrievers", "benchmarks"},
    "training.json": {"retrievers"},
    "query_hashes.npy": {"retrievers"},
    "evaluation.json": {"evaluation"},
    "run.parquet": {"evaluation"},
}

OUTSIDE: dict[tuple[str, str], str] = {
    ("synthesis/generators/recorded.py", "corpus.jsonl"): "the demo collection that is shipped, in data/demo",
    ("corpus/folders.py", "corpus.jsonl"): "a user's BEIR folder on its way in",
    ("query_sets/exports/formats.py", "corpus.jsonl"): "a BEIR folder on its way out",
}

HEAVY = {"torch", "transformers", "sentence_transformers"}
ALLOWED: dict[str, set[str]] = {
    "streamlit": {"app", "pages", "ui"},
    "duckdb": {"catalog"},
    "ray": {"jobs"},
    **{name: {"retrievers", "studies", "workers"} | STAGES for name in HEAVY},
}


# A class, or a type that is named: ``Scores = Mapping[str, float]``.
NAMED = re.compile(
    r"^(?: *class (?P<name>\w+)|(\w+) = (?:Callable|Iterator|Mapping|Sequence|dict|list|set|tuple)\[)", re.MULTILINE
)


def sources() -> list[Path]:
    return [*CDP.rglob("*.py"), REPOSITORY / "app.py", *(REPOSITORY / "pages").rglob("*.py")]


def room_of(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return parts[1] if parts[0] == "cdp" else parts[0]


# A statement that imports, on one line or in brackets, as the formatter leaves them. To parse all files takes a second.
IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import (\([^)]*\)|[^\n(]+)|import ([^\n]+))", re.MULTILINE)


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def imports_of(path: Path) -> list[tuple[str, int]]:
    """Every module imported anywhere in a file, with its line."""
    found: list[tuple[str, int]] = []
    parts = text_of(path).split('"""')
    assert len(parts) % 2, f"{path}: where its long strings end is not clear"
    code = '"'.join(part if i % 2 == 0 else "\n" * part.count("\n") for i, part in enumerate(parts))
    for match in IMPORT.finditer(code):
        package, names, modules = match.groups()
        line = code.count("\n", 0, match.start()) + 1
        listed = re.sub(r"#[^\n]*", "", names or modules).strip("()").split(",")
        found += [
            (f"{package}.{name.split()[0]}" if package else name.split()[0], line) for name in listed if name.strip()
        ]
    return found


def is_record(module: str) -> bool:
    """Whether what is imported is a class or a constant, by its name."""
    return module.rpartition(".")[2].lstrip("_")[:1].isupper()


def is_open(module: str) -> bool:
    """Return True for what a face may import of a file in ``OPEN_FILES``, the file itself included."""
    return any(f"{module}.".startswith(f"cdp.{name}.") for name in OPEN_FILES)


# What changes files, submits a job or asks the network.
WRITES = re.compile(
    r"\bwrite_(?:json|bytes|text)\(|\.(?:mkdir|unlink|rename|rmdir|touch)\(|\bshutil\.|\bstaging\(|\blocked\("
    r"|\bopen\([^)]*[\"'][wax+]|\bjobs\.(?:submit|stop|delete|resume)\(|\bimport (?:httpx|httpx2|subprocess|socket)\b"
)
# Functions of an open file that are called by workers and services alone.
WRITTEN_BY_OTHERS = {("retrievers/leakage.py", "write_hashes")}


def test_what_faces_call_writes_nothing() -> None:
    paths = [path for room in OPEN for path in (CDP / room).rglob("*.py")]
    paths += [CDP / f"{name.replace('.', '/')}.py" for name in OPEN_FILES]
    assert len(paths) > 15
    wrong, excused = [], set()
    for path in paths:
        place = path.relative_to(CDP).as_posix()
        for node in ast.parse(text_of(path)).body:
            code = ast.unparse(node)
            if WRITES.search(code):
                name = str(getattr(node, "name", ""))
                excused.add((place, name))
                wrong += [] if (place, name) in WRITTEN_BY_OTHERS else [f"{place}:{node.lineno} {name}"]
    assert wrong == []
    assert excused == WRITTEN_BY_OTHERS, "an exception that nothing needs any more"


@pytest.mark.parametrize("code", ["write_json(p, x)", "p.mkdir()", "open(p, 'w')", "jobs.submit(w)", "import httpx"])
def test_the_rule_on_writing_sees(code: str) -> None:
    assert WRITES.search(ast.unparse(ast.parse(code)))


def test_rooms_import_only_what_lies_below_them() -> None:
    wrong = []
    for path in CDP.rglob("*.py"):
        room = room_of(path)
        if room == "__init__":
            continue
        assert room in LAYERS, f"{room} is a room that ARCHITECTURE.md and this test do not know"
        allowed = LAYERS[room] | {room}
        for module, line in imports_of(path):
            parts = module.split(".")
            if parts[0] != "cdp" or len(parts) < 2 or parts[1] in allowed | {"__version__"}:
                continue
            if not (room in FACES and parts[1] in ROOMS and (is_record(module) or is_open(module))):
                wrong.append(f"{path.relative_to(REPOSITORY)}:{line} imports {module}")
    assert wrong == []


def test_the_pure_rooms_know_no_workspace() -> None:
    paths = [path for room in PURE for path in (CDP / room).rglob("*.py")]
    assert [path.name for path in paths if "cdp.base.workspace.Workspace" in dict(imports_of(path))] == []


def test_no_two_rooms_import_each_other_and_no_stage_a_stage() -> None:
    """Held by what is imported, whatever ``LAYERS`` may come to say."""
    imported: dict[str, set[str]] = {}
    for path in CDP.rglob("*.py"):
        room = room_of(path)
        rooms = {module.split(".")[1] for module, _ in imports_of(path) if module.startswith("cdp.")}
        imported.setdefault(room, set()).update(rooms - {room})
    assert [(a, b) for a, rooms in imported.items() for b in rooms if a in imported.get(b, set())] == []
    assert [(stage, imported[stage] & STAGES) for stage in STAGES if imported[stage] & STAGES] == []
    assert [room for room, rooms in imported.items() if "workers" in rooms] == []


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports inside functions and under TYPE_CHECKING count as well: each file can be read before those above it."""
    files = {".".join(p.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): p for p in sources()}
    imported: dict[str, set[str]] = {}
    for name, path in files.items():
        # What is imported is a module itself, or a name of the module before the last dot.
        targets = {m if m in files else m.rpartition(".")[0] for m, _ in imports_of(path)}
        imported[name] = (targets & set(files)) - {name}
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        pytest.fail(" is imported by ".join(error.args[1]))


def test_no_two_classes_share_a_name() -> None:
    """Private ones included; a type that is named by an assignment may not have the name of a class either."""
    places: dict[str, list[str]] = {}
    classes = set()
    for path in CDP.rglob("*.py"):
        for kind, name in NAMED.findall(text_of(path)):
            places.setdefault(name or kind, []).append(str(path.relative_to(REPOSITORY)))
        classes |= set(re.findall(r"^ *class (\w+)", text_of(path), re.MULTILINE))

    assert {name: files for name, files in places.items() if name in classes and len(files) > 1} == {}


def test_libraries_stay_in_their_rooms() -> None:
    wrong = []
    for path in sources():
        for module, line in imports_of(path):
            library = module.split(".")[0]
            if library in ALLOWED and room_of(path) not in ALLOWED[library]:
                wrong.append(f"{path.relative_to(REPOSITORY)}:{line} imports {library}")
    assert wrong == []


# What loads a model or its tensors in the libraries, and the files that may call it. All others ask
# `retrievers/load.py`, which looks at a folder before a library does.
LOADER = re.compile(
    r"\b(?:from_pretrained|from_file|safe_open|load_file|torch\.load|BM25\.load|snapshot_download)\("
    r"|\b(?:SentenceTransformer|CrossEncoder|SparseEncoder|PeftModel|Transformer|pipeline)\("
    r"|\bimport (?:pickle|joblib|cloudpickle|dill)\b"
)
LOADING = {
    "retrievers/load.py": "models, checked before",
    "retrievers/static.py": "a folder that load.py checked; a table of our own",
    "retrievers/bm25.py": "an index of arrays, its settings replaced",
    "training/checkpoint.py": "safetensors of a training's state",
}


def test_models_are_loaded_in_one_place() -> None:
    calls = {}
    for path in sources():
        code = re.sub(r'"""[\s\S]*?"""|"[^"\n]*"|#[^\n]*', "", text_of(path))
        if found := set(LOADER.findall(code)):
            calls[str(path.relative_to(CDP)) if path.is_relative_to(CDP) else path.name] = found
    assert {name: found for name, found in calls.items() if name not in LOADING} == {}
    assert calls.keys() == LOADING.keys(), "a file that loads nothing any more"


def test_pages_use_services_and_not_the_rooms_behind_them() -> None:
    allowed = {"services", "charts", "ui", "base"} | OPEN
    wrong = []
    for path in [REPOSITORY / "app.py", *(REPOSITORY / "pages").rglob("*.py")]:
        for module, line in imports_of(path):
            parts = module.split(".")
            if (
                parts[0] == "cdp"
                and len(parts) > 1
                and parts[1] not in allowed
                and not (is_record(module) or is_open(module))
            ):
                wrong.append(f"{path.relative_to(REPOSITORY)}:{line} imports {module}")
    assert wrong == []


def literals(path: Path) -> list[tuple[str, int]]:
    """The texts in a file's code, with their lines; docstrings are not code."""
    nodes = list(ast.walk(ast.parse(text_of(path))))
    said = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [
        (node.value, node.lineno)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    ]


@pytest.mark.slow
def test_only_a_nouns_own_room_names_its_files() -> None:
    wrong, excused = [], set()
    for path in sources():
        others = {name for name, rooms in OWNERS.items() if name in text_of(path) and room_of(path) not in rooms}
        place = path.relative_to(CDP).as_posix() if path.is_relative_to(CDP) else path.name
        for text, line in literals(path) if others else ():
            name = text.rpartition("/")[2]
            if (place, name) in OUTSIDE:
                excused.add((place, name))
            elif name in others:
                wrong.append(f"{place}:{line} names {text}")
    assert wrong == []
    assert excused == set(OUTSIDE), "an exception that nothing needs any more"


UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
UNSAFE_CALLS = {
    "torch.load", "torch.jit.load", "pd.read_pickle", "pandas.read_pickle", "yaml.load", "yaml.load_all",
    "yaml.unsafe_load", "yaml.full_load",
}  # fmt: skip
# accelerate reads what these wrote with pickle.
UNSAFE_METHODS = {"load_state", "register_for_checkpointing"}
# Trusted to be False, or left out.
UNSAFE_KEYWORDS = {"allow_pickle", "trust_remote_code"}
# A file without any of these holds nothing unsafe.
UNSAFE_WORDS = (*UNSAFE_MODULES, *UNSAFE_CALLS, *UNSAFE_METHODS, *UNSAFE_KEYWORDS, "eval(", "exec(")


def unsafe(node: ast.AST) -> str:
    """Return what in a node may run code that a file brings along; empty if nothing does."""
    if isinstance(node, ast.Import):
        found = UNSAFE_MODULES & {alias.name.split(".")[0] for alias in node.names}
        return ", ".join(found)
    if isinstance(node, ast.ImportFrom):
        return str(node.module) if str(node.module).split(".")[0] in UNSAFE_MODULES else ""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return ", ".join(k.value for k, v in pairs if isinstance(k, ast.Constant) and _set(str(k.value), v))
    if not isinstance(node, ast.Call):
        return ""
    called = ast.unparse(node.func)
    if called in UNSAFE_CALLS | {"eval", "exec"} or called.rpartition(".")[2] in UNSAFE_METHODS:
        return called
    return ", ".join(keyword.arg or "" for keyword in node.keywords if _set(keyword.arg or "", keyword.value))


def _set(name: str, value: ast.expr) -> bool:
    return name in UNSAFE_KEYWORDS and not (isinstance(value, ast.Constant) and value.value is False)


@pytest.mark.parametrize(
    "code",
    [
        "import pickle", "from joblib import load", "torch.load(f, weights_only=True)", "np.load(f, allow_pickle=True)",
        "AutoModel.from_pretrained(s, trust_remote_code=True)", "{'trust_remote_code': flag}", "yaml.load(f)",
        "self.accelerator.load_state(f)", "accelerator.register_for_checkpointing(x)", "eval(x)",
    ],
)  # fmt: skip
def test_the_rule_on_unsafe_formats_sees(code: str) -> None:
    assert any(unsafe(node) for node in ast.walk(ast.parse(code)))
    assert any(word in code for word in UNSAFE_WORDS)


@pytest.mark.slow
def test_no_code_of_ours_reads_a_format_that_can_run_code() -> None:
    """Checkpoints, models and caches of somebody else's workspace are data."""
    folders = [REPOSITORY / "pages", REPOSITORY / "perf", REPOSITORY / "reproduction"]
    paths = [*CDP.rglob("*.py"), REPOSITORY / "app.py", *(path for f in folders for path in f.rglob("*.py"))]
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{getattr(node, 'lineno', 0)}: {found}"
        for path in paths
        if any(word in text_of(path) for word in UNSAFE_WORDS)
        for node in ast.walk(ast.parse(text_of(path)))
        if (found := unsafe(node))
    ]
    assert wrong == []


def test_no_page_lies_directly_in_pages() -> None:
    assert [p.name for p in (REPOSITORY / "pages").glob("*.py")] == []


@pytest.mark.slow
def test_importing_the_app_loads_no_model_library() -> None:
    """One after the other in one process: what the first of them loads is there when the next is asked."""
    modules = ["cdp", "cdp.training.plan", "cdp.evaluation.card", "cdp.services", "cdp.cli", "app"]
    code = "".join(
        f"import sys, {module}; print({module!r}, sorted(set(sys.modules) & {HEAVY!r}), flush=True);"
        for module in modules
    )
    names = [name for name in cdp.__all__ if name != "WeightedInfoNCELoss"]
    code = f"""if True:
        import sys, cdp
        assert not [m for m in sys.modules if m.startswith("cdp.")], "import cdp loads something"
        assert all(callable(getattr(cdp, name)) for name in {names})
        {code}
        assert all(callable(getattr(cdp, name)) for name in {names}), "a room took a name's place"
    """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-len(modules) :] == [f"{module} []" for module in modules]
