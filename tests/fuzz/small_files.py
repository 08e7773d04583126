"""Attacks on what is read besides documents and queries: settings, plans of studies, weights, answers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cdp.base.config import (
    DownloadConfig,
    EvaluationConfig,
    MetricsConfig,
    PromptTuningConfig,
    SynthesisConfig,
    TrainingConfig,
)
from cdp.base.settings import Config
from cdp.base.workspace import Workspace
from cdp.corpus import ReadOptions
from cdp.query_sets import ImportOptions
from cdp.studies.config import PLANS, StudyConfig, read_plan
from cdp.studies.plan import StudySource, conditions, places, training_config
from cdp.synthesis.batch import read_batch
from cdp.training.weightings.column import read_weights
from tests.fuzz.mutation import SNIPPETS, damaged, gzipped

CONFIGS: tuple[type[Config], ...] = (
    SynthesisConfig, MetricsConfig, PromptTuningConfig, TrainingConfig, EvaluationConfig, DownloadConfig, StudyConfig,
    ReadOptions, ImportOptions,
)  # fmt: skip


def _deep(kind: str, depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind == "list" else {"a": value}
    return value


ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**400, 10**5000, 0.5, 1e308, float("inf"),
    float("-inf"), float("nan"), "inf", "-inf", "nan", "1e999", "1e400", "9" * 400, "9" * 5000, "0x10", "1_000", "²",
    "٣", " 7 ", "", " ", "auto", "none", "yes", "no", "\0", "a\0b", "\ud800", "x" * 300, "x" * 100_000, "é" * 300,
    "\n", "a\nb", "\x1b[31m", "{", "%s", "../..", "/", "~nobody", "http://127.0.0.1:abc/v1", "http://[", "1,2,3",
    "0," * 5000, ",".join(map(str, range(3000))), b"bytes", [], [1], {}, {"a": 1}, (), set(), object(), 1j,
    _deep("list", 50), _deep("list", 100_000), _deep("dict", 100_000),
)  # fmt: skip


def settings(folder: Path, workspace: Workspace, rng: random.Random) -> None:
    """The settings of some kind of job, as a form, a file or the command line may give them."""
    config = rng.choice(CONFIGS)
    names = list(config.settings())
    values: dict[Any, Any] = {}
    for name in rng.sample(names, rng.randrange(len(names) + 1)):
        default = config.settings()[name].default
        values[name] = rng.choice(ODD_VALUES) if rng.random() < 0.5 else default
    if rng.random() < 0.7:  # what is required, so that the checks of whole configurations are reached too
        values |= {
            name: "x" for name in ("corpus", "query_set", "retriever", "benchmark", "benchmarks") if name in names
        }
    if rng.random() < 0.2:
        values[rng.choice((*[v for v in ODD_VALUES if isinstance(v, str)], 1, None, 2.5))] = rng.choice(ODD_VALUES)
    made = config.from_dict(values)
    json.dumps(made.to_dict()).encode()
    if isinstance(made, StudyConfig):
        _planned(made)


def _planned(config: StudyConfig) -> None:
    """What the plan of a study leads to before anything is trained."""
    sources = [StudySource(name, "diverse", n_documents=10) for name in [*config.query_sets, *config.methods]]
    for condition in conditions(config, sources)[:20]:
        training_config(config, condition, "q")
    places(config)


PLAN_FILES: tuple[bytes, ...] = (
    *(file.read_bytes() for file in sorted(PLANS.glob("*.yaml"))),
    b'{"benchmarks": ["a:test", "b"], "query_sets": ["q"], "per_doc": [1, 5], "seeds": [0], "epochs": 2}\n',
)
YAML_SNIPPETS = (
    b"2026-02-31", b"2026-01-01", b"12:30:45", b"!!int x", b"!!float y", b"!!bool z", b"!!timestamp t", b"!!binary 1",
    b"!!python/object/apply:os.getcwd []", b"!!set {a, b}", b"!!omap [a: 1]", b"!!pairs [a: 1]", b"&a ", b"*a ",
    b"<<: ", b"<<: [*a, *a, *a]", b"? ", b": ", b"- ", b"|\n", b">\n", b"0x" + b"f" * 5000, b"0o7", b"1e400", b".inf",
    b".nan", b"~", b"null", b"[" * 2000, b"{a: " * 500, b"- " * 1000, b"---\n", b"...\n", b"%YAML 9.9\n", b"%TAG ! x\n",
    b"&a [*a]", b"per_doc: ", b"seeds: ", b"name: ", b"\t", b"'", b'"\\uD800"', b"'\\0'", b'"\\0"', b"1: 2\n",
    b"0" * 10_000, b"1:" * 3000,
)  # fmt: skip


def bomb(depth: int, merge: bool) -> bytes:
    """YAML that grows tenfold with each line, by aliases or by merge keys."""
    kind = "{<<: [%s]}" if merge else "[%s]"
    lines = ["a0: &a0 " + ("{x: 1, y: 2}" if merge else "[x, y]")]
    lines += [f"a{i}: &a{i} " + kind % ", ".join([f"*a{i - 1}"] * 10) for i in range(1, depth)]
    return "\n".join([*lines, f"benchmarks: *a{depth - 1}", ""]).encode()


def plans(folder: Path, workspace: Workspace, rng: random.Random) -> None:
    """A plan of a study in YAML or JSON, read and laid out."""
    data = damaged(rng.choice(PLAN_FILES), rng, PLAN_FILES)
    for _ in range(rng.choice((0, 1, 1, 2))):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.choice(YAML_SNIPPETS) + data[at:]
    if rng.random() < 0.05:
        data = bomb(rng.randrange(1, 12), merge=rng.random() < 0.5)
    if rng.random() < 0.02:
        data += rng.choice(SNIPPETS) * 20_000
    path = folder / rng.choice(("plan.yaml", "plan.json", "plan.yml", "plan"))
    path.write_bytes(data)
    changes = {rng.choice(("per_doc", "seeds", "epochs", "name")): str(rng.choice(("1", "x", "9" * 400)))}
    _planned(read_plan(path, changes if rng.random() < 0.2 else None))


IDS = [f"d{i}-1" for i in range(6)]
WEIGHT_FILES: Mapping[str, bytes] = {
    "w.csv": b"query_id,weight\n" + b"".join(f"{name},{i}.5\n".encode() for i, name in enumerate(IDS)),
    "w.tsv": b"weight\tquery_id\r\n" + b"".join(f"{i}\t{name}\r\n".encode() for i, name in enumerate(IDS)),
    "w.jsonl": b"".join(json.dumps({"query_id": n, "weight": i}).encode() + b"\n" for i, n in enumerate(IDS)),
}


def _small_file(folder: Path, files: Mapping[str, bytes], rng: random.Random) -> Path:
    name = rng.choice(list(files))
    data = damaged(files[name], rng, list(files.values()))
    if rng.random() < 0.1:
        name, data = f"{name}.gz", gzipped(files[name], rng)
    (folder / name).write_bytes(data)
    return folder / name


def weights(folder: Path, workspace: Workspace, rng: random.Random) -> None:
    """A file of weights of one's own."""
    path = folder if rng.random() < 0.02 else _small_file(folder, WEIGHT_FILES, rng)
    found = read_weights(str(path), rng.sample(IDS, rng.randrange(len(IDS) + 1)))
    assert (found >= 0).all()


def _answer(number: int) -> dict[str, Any]:
    body = {
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "1. what?\n2. why?"}}
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 8, "total_tokens": 20},
    }
    return {"id": f"b{number}", "custom_id": f"cdp-{number:064x}", "response": {"status_code": 200, "body": body}}


BATCHES: Mapping[str, bytes] = {
    "out.jsonl": b"".join(json.dumps(_answer(i)).encode() + b"\n" for i in range(5)),
    "errors.jsonl": json.dumps({**_answer(9), "response": None, "error": {"message": "no"}}).encode() + b"\n",
}


def batches(folder: Path, workspace: Workspace, rng: random.Random) -> None:
    """The output file of a batch: bytes damaged, or a value in a line replaced by one of another type."""
    if rng.random() < 0.5:
        path = _small_file(folder, BATCHES, rng)
    else:
        path = folder / "out.jsonl"
        path.write_text(json.dumps(wrong_types(_answer(1), rng)) + "\n", encoding="utf-8", errors="surrogatepass")
    read_batch(Workspace(folder / "own"), path)


JSON_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**70, 10**400, 1.5, float("inf"), float("nan"), "", "x", "\0", "\ud800", "x" * 5000, [], [None],
    {}, {"x": []}, [[1]], _deep("list", 400), _deep("dict", 400),
)  # fmt: skip


def wrong_types(value: Any, rng: random.Random) -> Any:
    """A JSON value with one of the values in it taken out, or replaced by one of another type."""
    if rng.random() < 0.15 or not isinstance(value, (dict, list)) or not value:
        return rng.choice(JSON_VALUES)
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = rng.choice(keys)
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if rng.random() < 0.1:
        del copy[key]
    else:
        copy[key] = wrong_types(value[key], rng)
    return copy


SMALL: Mapping[str, Callable[[Path, Workspace, random.Random], None]] = {
    "settings": settings,
    "plans": plans,
    "weights": weights,
    "batches": batches,
}
