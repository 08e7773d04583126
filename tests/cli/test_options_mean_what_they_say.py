"""Options take effect or are refused; text and JSON say the same; pages show commands that the program takes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.cli.declare import all_commands
from cdp.services import projects
from tests.benchmarks.folders import write_benchmark
from tests.cli.support import answer, refusal, run
from tests.services.support import evaluation
from tests.services.test_runs import BEFORE, better
from tests.support import REPOSITORY


@pytest.mark.slow
def test_a_comparison_is_of_the_project_in_use_and_holm_counts_its_runs_alone(
    workspace: Workspace, tmp_path: Path
) -> None:
    for name in ("sea", "land"):
        answer("benchmarks", "add", str(write_benchmark(tmp_path / name)))
        projects.create(workspace, f"about {name}", benchmarks=[name])
        evaluation(workspace, "minilm", name, BEFORE)
        evaluation(workspace, "bm25", name, better(0.2))

    def compared(*words: str) -> dict[str, float]:
        rows = answer("results", "compare", "--baseline", "minilm", *words)["rows"]
        return {row["benchmark"]: row["p_holm"] for row in rows if row["difference"] is not None}

    both = compared()
    assert set(both) == {"sea", "land"}
    alone = compared("--project", "about sea")
    assert set(alone) == {"sea"}
    assert both["sea"] == pytest.approx(2 * alone["sea"])
    run("projects", "use", "about sea")
    assert compared() == alone
    assert compared("--project", "all") == both


@pytest.mark.parametrize(
    ("words", "covered"), [("tide moon sea salt", False), ("tide moon sea salt harbour anchor storm lighthouse", True)]
)
def test_advice_is_the_same_sentence_in_json_and_text(
    workspace: Workspace, tmp_path: Path, words: str, covered: bool
) -> None:
    """At CW 4 the JSON advised against diverse queries where the text said that there is no evidence."""
    (tmp_path / "queries.txt").write_text(f"{words}\n" * 40)
    file = ("--file", str(tmp_path / "queries.txt"), "--task", "multi-hop")
    found = answer("cw", "recommend", *file)
    assert found["advice"] in run("cw", "recommend", *file).stdout
    assert ("no evidence" in found["advice"]) is not covered
    assert ("likely to hurt" in found["advice"]) is False
    assert "headline" not in found


@pytest.mark.slow
def test_a_setting_that_the_generator_does_not_read_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "few.jsonl").write_text('{"_id": "a", "text": "The tide comes in twice a day."}\n')
    answer("corpus", "add", str(tmp_path / "few.jsonl"))
    ask = ("--corpus", "few", "--generator", "template")
    said = "The generator template does not read temperature; it reads: seed."
    assert said in refusal("queries", "generate", *ask, "--set", "temperature=0.3")
    assert said in refusal("queries", "generate", *ask, "--temperature", "0.3")
    assert said in refusal("queries", "preview", *ask, "--set", "temperature=0.3")
    assert "does not read batch_size" in refusal(
        "queries", "generate", "--corpus", "few", "--generator", "openai", "--batch-size", "4"
    )
    sampled = ("queries", "generate", "--corpus", "few", "--generator", "openai", "--method", "inpars_gbq")
    for value in ("1.3", "0"):
        assert "temperature has no effect: the method inpars_gbq sets its own" in refusal(
            *sampled, "--set", f"temperature={value}"
        )
    assert "did you mean max_output_tokens?" in refusal(*sampled, "--set", "max_completion_tokens=100")
    assert answer("queries", "preview", *ask, "--set", "seed=3")["methods"]["diverse"]["queries"]
    assert answer("jobs", "list") == []


@pytest.mark.slow
def test_every_command_that_is_shown_is_one_that_the_program_takes() -> None:
    """Each call of ``commands.line``: its words are a command, and its keywords are options of it."""
    known, seen = all_commands(), 0
    for path in (REPOSITORY / "cdp").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "commands.line(" in text else ():
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "commands.line"):
                continue
            if isinstance(node.args[0], ast.Starred):  # a choice between two commands, made where it runs
                continue
            words = [word.value for word in node.args if isinstance(word, ast.Constant)]
            name = next((name for name in (" ".join(map(str, words[:2])), *map(str, words[:1])) if name in known), "")
            assert name, f"{path.name}:{node.lineno}: {words}"
            options = {keyword.arg for keyword in node.keywords if keyword.arg} - {"config", "without"}
            assert options <= known[name].arguments.keys(), f"{path.name}:{node.lineno}: {name}"
            flags = {word for word in words if isinstance(word, str) and word.startswith("--")}
            assert flags <= {argument.flag for argument in known[name].arguments.values()}, f"{path.name}:{node.lineno}"
            seen += 1
    assert seen > 30


@pytest.mark.slow
def test_a_split_is_named_behind_its_benchmark_or_beside_it_never_as_two(with_demo: Workspace, tmp_path: Path) -> None:
    both = {name: answer("cw", "profile", "--benchmark", *name.split()) for name in ("demo:dev", "demo --split dev")}
    assert both["demo:dev"] == both["demo --split dev"]
    done = answer("evaluate", "bm25", "--benchmark", "demo:dev", "--split", "dev", "--wait")
    assert (done["benchmark"], done["split"]) == ("demo", "dev")
    assert {row["split"] for row in answer("results", "list", "--benchmark", "demo:dev")} == {"dev"}
    for command in (["evaluate", "bm25"], ["cw", "profile"], ["train", "demo-diverse"]):
        said = refusal(*command, "--benchmark", "demo:dev", "--split", "test")
        assert "demo:dev names the split dev, and the split test is given beside it" in said
    out = tmp_path / "dev.qrels"
    run("benchmarks", "export", "demo:dev", "--format", "trec-qrels", "--out", str(out))
    assert len({line.split()[0] for line in out.read_text().splitlines()}) == 40

    colon = write_benchmark(tmp_path / "of:two")
    done = answer("evaluate", "bm25", "--benchmark", str(colon), "--wait")
    assert done["split"] == "test", "a folder of that very name is no split"
