"""A kind of job that one file adds: started by service, command and page, worded, resumed; and no other code runs.

The file is that of ``docs/template``. The jobs are real: a supervisor and a worker each, as for every user.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdp.base.registry import registry
from cdp.base.settings import Config
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.services import jobs
from cdp.services.access import NotAllowedError
from tests.pages.support import ended_job
from tests.support import REPOSITORY, install_plugins

FILE = (REPOSITORY / "docs" / "template" / "cdp_template" / "job_kind.py").read_text(encoding="utf-8")
QUERY_SET = "demo paraphrase"
# Waits before it reads, in its first attempt, until it is asked to stop.
HELD = FILE.replace(
    "    lengths: list[int] = []\n",
    "    lengths: list[int] = []\n    while job.attempt == 1 and (job.workspace.root / 'hold').exists():\n"
    "        job.advance('holding', 0, 0)\n",
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of an operator who installed the file as a plug-in, with the demo collection."""
    folder = tmp_path_factory.mktemp("plugin")
    assert HELD != FILE
    (folder / "my_kind.py").write_text(HELD, encoding="utf-8")
    install_plugins(folder, "my_kind")
    values = {**os.environ, "PYTHONPATH": str(folder), "CDP_WORKSPACE": str(folder / "workspace")}
    python(values, "-m", "cdp", "demo")
    return values


def python(environment: dict[str, str], *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=REPOSITORY, env=environment, timeout=300
    )
    assert done.returncode == code, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stderr if code else done.stdout


def cdp(environment: dict[str, str], *words: str) -> Any:
    return json.loads(python(environment, "-m", "cdp", *words, "--json"))


@pytest.mark.slow
def test_a_command_starts_it_and_its_settings_are_options(environment: dict[str, str]) -> None:
    done = cdp(environment, "jobs", "start", "lengths", "--query-set", QUERY_SET, "--at-least", "3", "--wait")
    assert (done["state"], done["n_queries"] > 100, done["words"] > 3) == ("finished", True, True)
    same = cdp(
        environment, "jobs", "start", "lengths", "--set", f"query_set={QUERY_SET}", "--set", "at_least=3", "--wait"
    )
    assert [same[name] for name in ("n_queries", "words")] == [done[name] for name in ("n_queries", "words")]

    spec = read_json(Path(environment["CDP_WORKSPACE"]) / "jobs" / done["id"] / "spec.json")
    assert (spec["module"], spec["config"]["query_set"]) == ("my_kind", spec["inputs"]["query_set"])
    assert spec["config"]["query_set"] != QUERY_SET, "the settings have its id"
    assert spec["inputs"]["query_set_hash"]
    assert "finished (counting words)" in python(environment, "-m", "cdp", "jobs", "show", done["id"])
    assert "--at-least" in python(environment, "-m", "cdp", "jobs", "start", "lengths", "--help")

    wrong = python(environment, "-m", "cdp", "jobs", "start", "lengths", "--query-set", "none", "--wait", code=2)
    assert "query set" in wrong
    assert "Did you mean lengths?" in python(environment, "-m", "cdp", "jobs", "start", "length", "--wait", code=2)
    own = python(environment, "-m", "cdp", "jobs", "start", "training", "--query-set", QUERY_SET, code=2)
    assert "Training has a command of its own. See: " in own
    assert "train --help" in own


# One process for the service and the page.
DASHBOARD = """
import json, sys
from pathlib import Path
from cdp.base.registry import registry
from cdp.base.workspace import Workspace
from cdp.services import jobs
from tests.jobs.support import until_state
from tests.pages.opening import opened
from tests.pages.test_job_page import shown

workspace = Workspace.default()
kind = registry("job kind")["lengths"]
(workspace.root / "hold").touch()
held = jobs.start(workspace, "lengths", kind.settings(query_set=sys.argv[1]))
until_state(workspace, held, "running")
at = opened("jobs", {"job": held})
running = shown(at)
jobs.stop(workspace, held)
stopped = until_state(workspace, held, "stopped")
(workspace.root / "hold").unlink()
assert jobs.missing_secrets(workspace, held) == []
at = opened("jobs", {"job": held})
at.button(key=f"resume_{held}").click().run()
resumed = jobs.wait(workspace, held)

before = {view.id for view in jobs.list_jobs(workspace)}
at = opened("jobs", {})
listed = [str(cell) for frame in at.dataframe if "Kind" in frame.value.columns for cell in frame.value["Kind"]]
at.selectbox(key="start_kind").set_value("lengths").run()
at.number_input(key="start_lengths_at_least").set_value(4).run()
at.button(key="start_lengths_button").click().run()
[made] = [view for view in jobs.list_jobs(workspace) if view.id not in before]
made = jobs.wait(workspace, made.id)
at = opened("jobs", {"job": made.id})
results = [str(cell) for frame in at.dataframe if "Result" in frame.value.columns for cell in frame.value["Result"]]
print(json.dumps({
    "running": running, "resumed": [str(resumed.state), resumed.attempt], "listed": listed,
    "name": made.name, "made": [str(made.state), made.config["at_least"]], "results": results,
    "again": jobs.again(made), "outcome": jobs.outcome(workspace, made.id), "exceptions": len(at.exception),
    "loaded": [name for name in ("torch", "transformers", "sentence_transformers") if name in sys.modules],
}))
"""


@pytest.mark.slow
def test_the_service_and_the_page_start_list_stop_and_resume_it(environment: dict[str, str]) -> None:
    told = json.loads(python(environment, "-c", DASHBOARD, QUERY_SET).strip().splitlines()[-1])
    assert "Counting words" in told["running"]
    assert told["resumed"] == ["finished", 2]
    assert "Counting words" in told["listed"]
    assert (told["name"], told["made"]) == ("Counting words", ["finished", 4])
    assert told["outcome"]["words"] > 4
    assert "Words" in told["results"]
    [again] = told["again"]
    assert "jobs start lengths --query-set " in again
    assert "--at-least 4 --wait" in again
    assert told["exceptions"] == 0
    assert told["loaded"] == [], "a declaration loads no model library"


def test_every_kind_of_the_product_has_all_facts() -> None:
    kinds = registry("job kind")
    assert len(kinds) == 14
    for name, kind in kinds.items():
        assert kind.title[:1].isupper()
        assert kind.help.endswith(".")
        assert issubclass(kind.settings, Config)
        assert kind.module == kind.main.__module__
        assert kind.module.startswith("cdp.workers.")
        assert kind.makes
        assert kind.command, f"{name} is started by a command of its own"
        assert {*kind.inputs, *kind.once, *filter(None, [kind.word])} <= set(kind.settings.settings())
    assert len({kind.module for kind in kinds.values()}) == len(kinds), "a file for each"


@pytest.mark.parametrize("module", ["os", "tests.jobs.workers.count", "cdp.workers.evaluation", "my_kind"])
def test_a_specification_that_names_another_module_is_not_run(workspace: Workspace, module: str) -> None:
    path = ended_job(workspace, "training-1", "training", {"query_set": "q"}, outcome="failed") / "spec.json"
    write_json(path, {**read_json(path), "module": module})
    with pytest.raises(NotAllowedError, match="which is not the worker of a job of kind 'training'"):
        jobs.resume(workspace, "training-1")
    assert jobs.show(workspace, "training-1").attempt == 1


def test_a_job_of_a_kind_that_is_not_installed_is_listed_and_not_run(workspace: Workspace) -> None:
    path = ended_job(workspace, "lengths-1", "lengths", {"query_set": "q"}, outcome="failed") / "spec.json"
    write_json(path, {**read_json(path), "module": "my_kind"})
    (view,) = jobs.list_jobs(workspace)
    assert (jobs.activity(view.kind), str(view.state)) == ("Lengths", "failed")
    assert jobs.again(view) == []
    with pytest.raises(NotAllowedError, match="a plug-in is missing"):
        jobs.resume(workspace, view.id)
