"""Check of a job whose settings were read from the workspace: every way to start one again passes here.

A workspace may come from somebody else, unpacked by ``tar``. Its ``spec.json`` can name any module, path, model or
address, so a resume or a clone trusts only what lies in the workspace, ships with CDP Studio, or was set up by the
operator (``CDP_ALLOWED_FOLDERS``, ``CDP_BASE_URL`` …). Anything else has to be named again in the call (``allow``).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from cdp.base.config import (
    DownloadConfig,
    EvaluationConfig,
    FilterConfig,
    IndexConfig,
    MetricsConfig,
    MiningConfig,
    PromptTuningConfig,
    ResultImportConfig,
    RoundTripConfig,
    SynthesisConfig,
    TrainingConfig,
)
from cdp.base.errors import CdpError
from cdp.base.settings import Config
from cdp.base.text import shown, typed_path
from cdp.base.workspace import Workspace
from cdp.evaluation import bm25
from cdp.jobs import JobSpec
from cdp.llm import address
from cdp.retrievers import PRESETS
from cdp.services import access, endpoints, paths
from cdp.services.modes import Action, NotAllowedError, may
from cdp.studies.config import StudyConfig

# Every kind of job, with the one module that may run it and what its settings are made of. The measures without a
# model have ids of query sets as their only settings.
JOBS: dict[str, tuple[str, type[Config] | None]] = {
    "synthesis": ("cdp.workers.synthesis", SynthesisConfig),
    "prompts": ("cdp.workers.prompt_tuning", PromptTuningConfig),
    "metrics": ("cdp.workers.metrics", MetricsConfig),
    "measures": ("cdp.workers.measures", None),
    "round-trip": ("cdp.workers.round_trip", RoundTripConfig),
    "filter": ("cdp.workers.filtering", FilterConfig),
    "mining": ("cdp.workers.mining", MiningConfig),
    "training": ("cdp.workers.training", TrainingConfig),
    "evaluation": ("cdp.workers.evaluation", EvaluationConfig),
    "study": ("cdp.workers.study", StudyConfig),
    "index": ("cdp.workers.index", IndexConfig),
    "download": ("cdp.workers.download", DownloadConfig),
    "import": ("cdp.workers.importing", ResultImportConfig),
}


LONGEST = 400  # characters of a path or address that a message repeats


def check(workspace: Workspace, spec: JobSpec, allow: Sequence[str] = (), named: Collection[str] = ()) -> None:
    """Raise NotAllowedError unless the job may be started again from here; the sentence names the setting.

    ``allow`` holds paths and addresses outside the workspace that the caller names again, ``named`` the settings that
    the caller replaces by values of its own.
    """
    found = outside(workspace, spec, allow)
    for setting, values in found.items():
        if setting not in named:
            raise NotAllowedError(
                f"The job's setting {setting!r} names {values[0][:LONGEST]!r}, which is outside this workspace.",
                hint=f"If you trust it, add: --allow {shlex.quote(values[0][:LONGEST])}",
            )
    config = _config(spec)
    if config is not None and not found:
        access.checked(workspace, config)


def outside(workspace: Workspace, spec: JobSpec, allow: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return the paths and addresses outside the workspace that the job's settings name, by setting.

    Raises NotAllowedError for a job that would run anything but the worker of its kind.
    """
    if not may(Action.ANY_ENDPOINT):
        allow = ()  # visitors of a shared dashboard decide nothing about the server's files and network
    config = _config(spec)
    found: dict[str, list[str]] = {}
    for setting, holds, value in access.names_in(config) if config is not None else ():
        if not (_known_address(value, allow) if holds == "endpoint" else _inside(workspace, spec, holds, value, allow)):
            found.setdefault(setting, []).append(value)
    return found


def _config(spec: JobSpec) -> Config | None:
    module, kind = JOBS.get(spec.kind, (None, None))
    if module is None or spec.module != module:
        raise NotAllowedError(
            f"The job {spec.id} would run {shown(spec.module)}, which is not the worker of a job of kind "
            f"{shown(spec.kind)}.",
            hint="It was not submitted by this program. Delete it.",
        )
    return kind.from_dict(spec.config) if kind is not None else None


def _known_address(url: str, allow: Sequence[str]) -> bool:
    """Return True for an address that the operator set up or the caller names."""
    # Without an address of the operator's, jobs go to OpenAI: then it may also be spelt out.
    known = endpoints.allowed() or [address.OPENAI_URL]
    return any(address.same(url, other) for other in (*known, *(a for a in allow if "://" in a)))


def _inside(workspace: Workspace, spec: JobSpec, holds: str, text: str, allow: Sequence[str]) -> bool:
    """Return True for a name, and for a path in the workspace or in a folder that the operator or the caller named."""
    if holds == "model" and (text in PRESETS or text in access.CHOICES or bm25.language_in(text) is not None):
        return True
    try:
        # A relative path starts where the job was submitted: the worker reads it from there.
        path = Path(spec.cwd or os.getcwd(), typed_path(text))
        if holds == "benchmark" and ":" in text and not path.exists():
            path = path.with_name(path.name.rpartition(":")[0])  # name:split
        if holds != "path" and not paths.is_path(text) and not path.exists():
            return True  # the name of a model of the hub, of a benchmark, of a training
        path = path.resolve()
        folders = [*paths.roots(workspace), *(typed_path(a).resolve() for a in allow if "://" not in a)]
    except (OSError, RuntimeError, ValueError, CdpError):
        return False
    return paths.within(path, folders)
