"""Choosing a prompt on a sample: own prompts from files, start, what was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cdp import query_sets
from cdp.base import permission
from cdp.base.config import PromptTuningConfig
from cdp.base.errors import InputError
from cdp.base.records import whole
from cdp.base.workspace import Workspace, slug
from cdp.corpus import resolve_corpus
from cdp.jobs import resolve_job
from cdp.services import access, jobs
from cdp.synthesis import pricing
from cdp.synthesis.candidates import _FOUND, candidates_of
from cdp.synthesis.generators import GENERATORS

LONGEST_PROMPT = 1_000_000


def read_prompts(files: Iterable[str | Path]) -> dict[str, str]:
    """Prompts of the user's own from files, under the files' names without ending."""
    prompts: dict[str, str] = {}
    for path in files:
        source = permission.to_read(Workspace.default(), path)
        name = slug(source.stem)
        if name in prompts:
            raise InputError(f"Two prompt files are called {name}.", hint="Rename one of them.")

        try:
            with open(source, encoding="utf-8-sig") as file:
                prompts[name] = file.read(LONGEST_PROMPT + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read as UTF-8 text: {error}", file=source) from error

        if len(prompts[name]) > LONGEST_PROMPT:
            raise InputError(f"It is longer than a prompt can be ({LONGEST_PROMPT:,} characters).", file=source)

    return prompts


@access.runs
def start(
    workspace: Workspace, config: PromptTuningConfig, *, prompts: Mapping[str, str] | None = None, api_key: str = ""
) -> str:
    """Have each candidate write queries for the same sample, ``prompts`` (name → template) among them, and choose one;
    the id of the job that chooses."""
    manifest = resolve_corpus(workspace, config.corpus)
    human = query_sets.resolve_query_set(workspace, config.scoring.human).id if config.scoring.human else ""

    config = config.replace(corpus=manifest.id, human=human)
    own = {slug(name): text for name, text in (prompts or {}).items()}
    candidates = []
    for name, settings in candidates_of(config, own).items():
        whole = settings.replace(limit=None, draw=None)
        cost = pricing.estimate(workspace, whole).cost if GENERATORS[config.endpoint.generator].endpoint else None
        candidates.append(
            {
                "name": name,
                "method": settings.method,
                "prompt": settings.prompt,
                "job": jobs.start(workspace, "synthesis", settings, api_key=api_key),
                "corpus_cost": cost,
            }
        )

    written = [str(candidate["job"]) for candidate in candidates]
    return jobs.start(workspace, "prompts", config, inputs={"candidates": candidates}, after=written)


def result(workspace: Workspace, job: str) -> dict[str, Any]:
    """What a job found, as its worker wrote it; InputError before its end."""
    folder = workspace.job(resolve_job(workspace, job))
    record: Any = whole(_FOUND, folder / "results" / "prompts.json")
    if record is None:
        raise InputError(f"The job {job} has not found anything yet.", hint="Wait for its end.")
    return record
