"""Settings, plans, weights and batch files, damaged: each ends in a result or a CdpError."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from cdp.base.config import EvaluationConfig, JudgedOn, SynthesisConfig, TrainingConfig
from cdp.base.errors import CdpError, ConfigError, InputError
from cdp.base.text import shown
from cdp.base.workspace import Workspace
from cdp.studies.config import StudyConfig, read_plan
from cdp.training.weightings.column import read_weights
from tests.fuzz.small_files import SMALL, bomb
from tests.support import REPOSITORY

SHORT = 40
LONG = 10_000


@pytest.mark.slow
@pytest.mark.parametrize("target", SMALL)
def test_a_few_damaged_inputs(target: str, tmp_path: Path) -> None:
    ends = {"result": 0, "CdpError": 0}
    for seed in range(SHORT):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            SMALL[target](folder, Workspace(tmp_path / "workspace"), random.Random(seed))
            ends["result"] += 1
        except CdpError as error:
            str(error).encode()
            ends["CdpError"] += 1
    # An attack that only ever bounces off the first check, or only ever gets through, attacks nothing.
    assert min(ends.values()) > 0, ends


@pytest.mark.soak
@pytest.mark.parametrize("target", SMALL)
def test_ten_thousand_damaged_inputs(target: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.fuzz.attack", target, str(LONG), "0", str(tmp_path / "attack")]
    subprocess.run(words, cwd=REPOSITORY, check=True, capture_output=True)
    report = json.loads((tmp_path / "attack" / "report.json").read_text(encoding="utf-8"))
    assert sum(report["ends"].values()) >= LONG
    assert report["wrong"] == []


@pytest.mark.parametrize(
    "value", ["inf", "-inf", "nan", "9" * 400, "9" * 5000, 10**400, 10**5000, 1e300, [], {}, b"1"], ids=shown
)
def test_no_number(value: object) -> None:
    with pytest.raises(ConfigError, match="'top_k' must be"):
        EvaluationConfig.from_dict({"retriever": "minilm", "benchmark": "b", "top_k": value})


@pytest.mark.parametrize("split", [3, ["dev"], {"dev": 1}])
def test_a_split_that_is_no_text_is_refused_as_one(split: object) -> None:
    """Its words were taken for the name of a split, and those of a list within lists never ended."""
    with pytest.raises(ConfigError, match="'split' must be text"):
        JudgedOn.from_dict({"benchmark": "demo", "split": split})


def test_several_wrong_settings_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        TrainingConfig.from_dict({"query_set": "a\0b", "epochs": "inf", "seed": 10**400, "learning_rate": "nan", 5: 1})
    for part in (
        "'query_set' must not hold",
        "'epochs' must be",
        "'seed' must be",
        "'learning_rate' must be",
        "5 is not",
    ):
        assert part in str(raised.value)
    assert len(str(raised.value)) < 2000


def test_whole_numbers_are_read_as_before() -> None:
    config = SynthesisConfig.from_dict({"corpus": "c", "per_doc": " 3 ", "seed": "1e3", "timeout": "2.5", "limit": ""})
    assert (config.per_doc, config.seed, config.endpoint.timeout, config.limit) == (3, 1000, 2.5, None)


BAD_PLANS = {
    "lists in lists": (b"benchmarks: " + b"[" * 1000, "not valid YAML"),
    "aliases": (bomb(10, merge=False), "must be texts"),
    "merge keys": (bomb(10, merge=True), "must be texts"),
    "a megabyte": (b"benchmarks: x\n# " + b"x" * 10**6, "larger than a plan"),
    "an endless number": (b"benchmarks: x\nquery_sets: q\nseeds: [0x" + b"f" * 5000 + b"]\n", "must be whole numbers"),
    "a name that is a number": (b"1: 2\n", "'1' is not a setting"),
    "a million trainings": (
        b"benchmarks: x\nquery_sets: q\nseeds: %b\nper_doc: %b\n"
        % ((b"[" + b", ".join(b"%d" % i for i in range(1, 1001)) + b"]",) * 2),
        "1,000,000 trainings",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BAD_PLANS)
def test_a_plan_that_is_none(what: str, tmp_path: Path) -> None:
    data, said = BAD_PLANS[what]
    path = tmp_path / "plan.yaml"
    path.write_bytes(data)
    with pytest.raises((InputError, ConfigError), match=f"(?s){said}"):
        read_plan(path)


def test_a_query_set_may_be_called_like_a_date(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("benchmarks: b\nquery_sets: [2026-01-01]\nseeds: 7\n", encoding="utf-8")
    assert isinstance(read_plan(path), StudyConfig)
    assert read_plan(path).query_sets == ("2026-01-01",)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("w.jsonl", b'{"query_id": "a", "weight": 1' + b"0" * 400 + b"}\n", "cannot be read|is no weight"),
        ("w.jsonl", b"[" * 100_000 + b"\n", "cannot be read"),
        ("w.jsonl", b'{"query_id": ["a"], "weight": 1}\n', "a has no weight"),
        ("w.csv", b"query_id,weight\na," + b"9" * 200_000 + b"\n", "cannot be read|is no weight"),
        ("w.csv.gz", b"\x1f\x8b\x08 cut off", "cannot be unpacked"),
    ],
)
def test_a_file_of_weights_that_is_none(name: str, data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=said):
        read_weights(str(tmp_path / name), ["a"])
