"""Choosing a prompt on a sample: start the jobs, read what was found, the settings that write queries with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cdp import jobs, query_sets
from cdp.base.config import PromptTuningConfig, SynthesisConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.records import Real, fields, whole
from cdp.base.workspace import Workspace, slug
from cdp.corpus import resolve_corpus
from cdp.services import access, queries, synthesis
from cdp.synthesis.generators import GENERATORS, make_generator
from cdp.synthesis.methods import METHODS, OWN, get_method

WORKER = "cdp.workers.prompt_tuning"
LONGEST_PROMPT = 1_000_000


def read_prompts(files: Iterable[str | Path]) -> dict[str, str]:
    """Prompts of the user's own from files, under the files' names without ending."""
    prompts: dict[str, str] = {}
    for path in files:
        source = access.to_read(Workspace.default(), path)
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


def candidates_of(config: PromptTuningConfig, prompts: Mapping[str, str]) -> dict[str, SynthesisConfig]:
    """{candidate: the settings that write its queries}: the methods that ``config`` names, then the user's ``prompts``
    (name → template), each checked.

    NotFoundError for an unknown method; ConfigError for a prompt without its fields, a method that cannot be tried on
    single documents, a prompt that nothing reads, fewer than two candidates, or one named twice.
    """
    methods = config.methods
    if OWN in methods:
        raise ConfigError("A prompt of your own is given as text, not by the name own.", hint="Give its file or text.")
    for method in map(get_method, methods):
        if method.from_queries or method.joint:
            needs = "several documents" if method.joint else "existing queries"
            raise ConfigError(f"{method.name} needs {needs}, so it is no candidate.", hint="Leave it out.")
    if config.endpoint.generator == "template" and len(methods) > 1 and not {*methods} <= {"diverse", "paraphrase"}:
        raise ConfigError(
            "The generator template reads no prompts: of other methods than paraphrase it writes the same queries.",
            hint="Try diverse and paraphrase, or choose a generator that asks a language model.",
        )
    names = [*methods, *prompts]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"More than one candidate is called {', '.join(sorted(twice))}.", hint="Rename one of them.")
    if len(names) < 2:
        raise ConfigError(
            "Choosing needs at least two candidates.", hint=f"Name methods ({', '.join(METHODS)}) or add prompts."
        )
    for name, template in prompts.items():
        try:
            get_method(OWN, template)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error.message}", hint=error.hint) from error
        if not make_generator(_settings(config, OWN, template)).is_llm:
            raise ConfigError(
                f"The generator {config.endpoint.generator} reads no prompts, so yours cannot be tried with it.",
                hint="Choose one that asks a language model.",
            )
    sample = {"limit": config.documents, "draw": config.scoring.seed}
    return {
        name: _settings(
            config, OWN if name in prompts else name, prompts.get(name, ""), name=f"Prompt {name}", **sample
        )
        for name in names
    }


def _settings(config: PromptTuningConfig, method: str, prompt: str, **more: Any) -> SynthesisConfig:
    written = {"corpus": config.corpus, "per_doc": config.per_doc, "endpoint": config.endpoint}
    return SynthesisConfig.from_dict({**written, "method": method, "prompt": prompt, **more})


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
        cost = synthesis.estimate(workspace, whole).cost if GENERATORS[config.endpoint.generator].endpoint else None
        candidates.append(
            {
                "name": name,
                "method": settings.method,
                "prompt": settings.prompt,
                "job": queries.generate(workspace, settings, api_key=api_key),
                "corpus_cost": cost,
            }
        )
    return jobs.submit(
        workspace,
        kind="prompts",
        name=f"Prompts for {manifest.name} ({config.target})",
        module=WORKER,
        config=config.to_dict(),
        inputs={"corpus": manifest.id, "corpus_hash": manifest.content_hash, "candidates": candidates},
        after=[str(candidate["job"]) for candidate in candidates],
    )


_CANDIDATE = fields(
    {"name": str, "method": str, "prompt": str}, query_set=str, error=str, distance=Real | None, inside=Real | None,
    corpus_cost=Real | None, measures=list[fields({"name": str, "value": Real | None})],  # type: ignore[misc]
)  # fmt: skip
# ``results/prompts.json``.
_FOUND = fields(
    {"config": dict[str, Any], "scorer": fields({"measure": str, "model": str, "note": str}), "choice": str,
     "why": str, "candidates": list[_CANDIDATE]},  # type: ignore[valid-type]
)  # fmt: skip


def result(workspace: Workspace, job: str) -> dict[str, Any]:
    """What a job found, as its worker wrote it; InputError before its end."""
    folder = workspace.job(jobs.resolve_job(workspace, job))
    record: Any = whole(_FOUND, folder / "results" / "prompts.json")
    if record is None:
        raise InputError(f"The job {job} has not found anything yet.", hint="Wait for its end.")
    return record


def synthesis_of(found: Mapping[str, Any]) -> SynthesisConfig:
    """The settings that write queries for the whole corpus with the prompt that was chosen."""
    chosen = next((c for c in found["candidates"] if c["name"] == found["choice"]), None)
    if chosen is None:
        raise InputError(f"The prompt {found['choice']!r} is not among the candidates of its job.")
    return _settings(PromptTuningConfig.from_dict(found["config"]), chosen["method"], chosen["prompt"])
