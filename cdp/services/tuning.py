"""Choosing a prompt on a sample: start the job, read what it found, the settings that write queries with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp import jobs, query_sets
from cdp.base.config import PromptTuningConfig, SynthesisConfig
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.workspace import Workspace, fitting, read_json_or_none, slug
from cdp.corpus import resolve_corpus
from cdp.services import access
from cdp.studies.prompts import LINE, candidates_of
from cdp.synthesis.generators import make_generator
from cdp.synthesis.methods import OWN

WORKER = "cdp.workers.prompt_tuning"
KIND = "prompts"
# Characters; a longer file is taken for something else than a prompt.
LONGEST_PROMPT = 100_000

TARGET_WORDS = {
    "ood": f"different queries: CE and Self-BLEU both below {LINE}",
    "in-domain": f"alike queries: CE and Self-BLEU both above {LINE}",
}


@dataclass(frozen=True)
class Tuning:
    """What a finished job found. ``candidates`` are the records of ``results/prompts.json``, the ``choice`` first."""

    job_id: str
    corpus: str
    target: str
    created: str
    n_documents: int
    n_corpus: int
    choice: str
    why: str
    scorer: dict[str, Any]
    candidates: list[dict[str, Any]]
    config: dict[str, Any]

    def candidate(self, name: str) -> dict[str, Any]:
        """The record of a candidate by its name; NotFoundError."""
        record = next((c for c in self.candidates if c["name"] == name), None)
        if record is None:
            raise NotFoundError("candidate", name, known=[c["name"] for c in self.candidates])
        return record


def read_prompts(files: Iterable[str | Path]) -> dict[str, str]:
    """Prompts of the user's own from files, under the files' names without ending."""
    prompts: dict[str, str] = {}
    for path in files:
        source = access.to_read(Workspace.default(), path)
        try:
            text = source.read_text(encoding="utf-8-sig")
        except FileNotFoundError as error:
            raise InputError(f"There is no file {source}.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise InputError("cannot be read as UTF-8 text.", file=source, hint="Save it as UTF-8.") from error
        if len(text) > LONGEST_PROMPT:
            raise InputError(f"is longer than {LONGEST_PROMPT:,} characters: is it a prompt?", file=source)
        name = slug(source.stem)
        if name in prompts:
            raise InputError(f"Two prompt files are called {name}.", hint="Rename one of them.")
        prompts[name] = text
    return prompts


@access.runs
def start(
    workspace: Workspace, config: PromptTuningConfig, *, prompts: Mapping[str, str] | None = None, api_key: str = ""
) -> str:
    """Start trying the candidates, ``prompts`` (name → template) among them; the job's id."""
    manifest = resolve_corpus(workspace, config.corpus)
    human = query_sets.resolve_query_set(workspace, config.human).id if config.human else ""
    checked = PromptTuningConfig.from_dict({**config.to_dict(), "corpus": manifest.id, "human": human})
    own = {slug(name): text for name, text in (prompts or {}).items()}
    endpoint = access.endpoint_for(checked.to_dict(), api_key)
    checked = checked.replace(base_url=endpoint.url or config.base_url)
    for candidate in candidates_of(checked, own):
        if candidate.method.joint:
            raise ConfigError(
                f"{candidate.method.title} needs several documents, and a candidate is tried on single ones.",
                hint="Leave it out.",
            )
        make_generator(checked.synthesis(candidate.method.name, candidate.prompt), api_key=endpoint.key)
    return jobs.submit(
        workspace,
        kind=KIND,
        name=f"Prompts for {manifest.name} ({checked.target})",
        module=WORKER,
        config=checked.to_dict(),
        inputs={"corpus": manifest.id, "corpus_hash": manifest.content_hash, "human": human, "prompts": own},
        env_secrets=endpoint.environment,
    )


def result(workspace: Workspace, job: str) -> Tuning | None:
    """What a job found; None before its end."""
    folder = workspace.job(jobs.resolve_job(workspace, job))
    record = read_json_or_none(folder / "results" / "prompts.json")
    if not isinstance(record, dict):
        return None
    names = ("corpus", "target", "created", "n_documents", "n_corpus", "scorer", "candidates", "config")
    with fitting(folder / "results" / "prompts.json"):
        facts = {name: record[name] for name in names}
        return Tuning(folder.name, choice=record["choice"]["name"], why=record["choice"]["why"], **facts)


def finished(workspace: Workspace, job: str) -> Tuning:
    """As ``result``; InputError before the job's end."""
    tuning = result(workspace, job)
    if tuning is None:
        raise InputError(f"The job {job} has not found anything yet.", hint="Wait for its end.")
    return tuning


def synthesis_of(tuning: Tuning, candidate: str = "") -> SynthesisConfig:
    """The settings that write queries for the whole corpus with a candidate's prompt, by default the chosen one."""
    record = tuning.candidate(candidate or tuning.choice)
    config = PromptTuningConfig.from_dict(tuning.config)
    settings = config.synthesis(record["method"], record["prompt"]).to_dict()
    name = f"{tuning.corpus} {record['name']}" if record["method"] == OWN else ""
    return SynthesisConfig.from_dict({**settings, "per_doc": config.per_doc, "name": name})
