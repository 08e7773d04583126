"""From a name to a model (preset, training, folder, hub; offline) and its use. Reads small files only; loads no torch.

A name is, in this order: a preset, a model behind an API (``cdp.retrievers.api``), a training job's id, a folder, a
model on the hub (from the local cache if it is there). Without a network an unknown name fails at once, not after
minutes of retries.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdp.base import records
from cdp.base.errors import ConfigError, ModelError, NotFoundError
from cdp.base.records import JOB_FACTS, whole
from cdp.base.text import typed_folder
from cdp.base.workspace import Workspace
from cdp.retrievers import api, bm25, model_files
from cdp.retrievers.presets import (
    COSINE,
    DENSE,
    GENERAL_DEFAULTS,
    MULTI_VECTOR,
    PRESETS,
    TRAINED,
    Default,
    Retriever,
    minilm_folder,
)

CARD = "README.md"

# See ``cdp.training.heads``.
START = "token vectors of the training texts"

# The kind of job that makes a model; of other kinds, tests keep the one of their winner.
TRAINING = "training"


def model_folder(job_folder: Path) -> Path:
    """Where a training leaves its model, in sentence-transformers' layout."""
    return job_folder / "model"


def has_model(job_folder: Path) -> bool:
    """Return True if a training has left its model, whole: the folder appears by a rename."""
    return (model_folder(job_folder) / "modules.json").is_file()


def title_of(kind: str, name: str) -> str:
    """What the model of a job of this kind and name is called where a person gave it no name."""
    return name if kind == TRAINING else f"Winner of {name}"


def card_file(model: Path) -> Path:
    """The model card in a model's folder."""
    return model / CARD


def training_result(job_folder: Path) -> dict[str, Any] | None:
    """What a training wrote of itself (``results/training.json``); None where it did not come so far."""
    return whole(records.TRAINING, job_folder / "results" / "training.json")


# Longest wait for the hub to say whether a model exists, name resolution included.
HUB_TIMEOUT_S = 8.0

_JOB_ID = re.compile(r"\w[\w.\-]{0,119}")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.\-]*(/[A-Za-z0-9][\w.\-]*)?")


@dataclass(frozen=True)
class ResolvedRetriever:
    """A model that was found.

    ``source`` is a folder, a hub name or an address, ``local`` whether no network is needed to load it, ``origin`` one
    of ``preset``, ``api``, ``job``, ``folder``, ``hub``; ``preset`` is set for presets only.
    """

    name: str
    title: str
    source: str
    local: bool
    origin: str
    similarity: Mapping[str, str]
    max_length: int | None
    defaults: Mapping[str, Default]
    licence: str
    licence_id: str = ""
    """As the hub's metadata writes it; empty where it is not known."""
    preset: Retriever | None = None
    kind: str = DENSE

    @property
    def is_static(self) -> bool:
        """Whether it is a preset without layers: one vector per token, also beside other files."""
        return self.preset is not None and self.preset.architecture == "static"

    @property
    def start(self) -> str:
        """What the head of an untrained preset starts from, which is part of a recipe; "" for one without a head."""
        preset = self.preset
        return START if preset is not None and (preset.projection is not None or preset.trained_only) else ""

    @property
    def is_ready(self) -> bool:
        """Whether it finds anything as it is: a preset may have to be trained first."""
        return self.preset is None or not self.preset.trained_only

    def require_ready(self) -> None:
        """Raise ConfigError unless it ``is_ready``."""
        if not self.is_ready:
            raise ConfigError(
                f"{self.name} finds nothing before it is trained, so it cannot be used untrained.",
                hint="Train it, and name that training.",
            )

    def require(self, kinds: Sequence[str], what: str) -> None:
        """Raise ConfigError unless this retriever is of one of the ``kinds``, which ``what`` needs."""
        if self.kind not in kinds:
            raise ConfigError(
                f"{self.name} is a {self.kind} retriever, and {what} needs a {' or '.join(kinds)} one.",
                hint=f"Name another, such as {next(p.name for p in PRESETS.values() if p.kind in kinds)}.",
            )


def resolve(name: str, workspace: Workspace, *, check_hub: bool = True) -> ResolvedRetriever:
    """Find the model called ``name``.

    NotFoundError: no such preset, job, folder or hub model. ModelError: it exists but cannot be used, or the
    hub cannot be reached to look for it. ``check_hub=False`` takes a hub name on trust, without any request.
    """
    name = name.strip()
    if name in PRESETS:
        return _from_preset(PRESETS[name], check_hub)

    if (named := api.parse(name)) is not None:
        return ResolvedRetriever(
            named.name, named.title, named.url, True, "api", COSINE, api.LONGEST,
            GENERAL_DEFAULTS, "See the terms of who serves it.",
        )  # fmt: skip

    job = _from_job(name, workspace)
    if job is not None:
        return job

    folder = typed_folder(name)
    if folder is not None:
        return _from_folder(name, folder.resolve(), "folder")
    if not _may_be_on_hub(name):
        raise NotFoundError("preset, training job or model folder", name, known=list(PRESETS))

    source, local = _find_on_hub(name, _candidates(name), check_hub)
    cached = _cached_folder(source)

    return _described(name, source, cached, local, "hub")


def resolve_any(name: str, workspace: Workspace) -> ResolvedRetriever | None:
    """Return the model called ``name`` (see ``resolve``) to search with, None for BM25. InputError for a language that
    BM25 does not know, ConfigError for a preset that finds nothing before a training."""
    language = bm25.language_in(name)
    if language is None:
        found = resolve(name, workspace)
        found.require_ready()
        return found

    bm25.check_language(language)
    return None


def is_loaded(name: str) -> bool:
    """Return True if a model is loaded for this retriever: BM25 has none, and one behind an API runs elsewhere."""
    return bm25.language_in(name) is None and api.parse(name) is None


def is_reserved(name: str) -> bool:
    """Return True for a name of a preset, BM25 or an API: no training could be found by it."""
    text = name.strip()
    return text in PRESETS or text.startswith(api.PREFIX) or bm25.language_in(name) is not None


# A small, widely used cross-encoder for passages.
CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L6-v2"


def check_reranker(workspace: Workspace, name: str) -> bool:
    """Return True for a multi-vector retriever, False for a cross-encoder. Raises as ``check_cross_encoder``."""
    resolved = resolve(name, workspace)
    if resolved.kind != MULTI_VECTOR:
        check_cross_encoder(workspace, name)

    return resolved.kind == MULTI_VECTOR


def check_cross_encoder(workspace: Workspace, name: str) -> None:
    """Raise NotFoundError for an unknown model, ConfigError for a model of single texts."""
    found = resolve(name, workspace)
    embeds = found.origin == "folder" and not model_files.may_score_pairs(Path(found.source))
    if embeds or found.origin in ("preset", "job"):
        raise ConfigError(
            f"{name} embeds single texts; a model that scores pairs is needed.",
            hint=f"Name a cross-encoder, such as {CROSS_ENCODER}.",
        )


def _from_preset(preset: Retriever, check_hub: bool) -> ResolvedRetriever:
    source, local = preset.source, False

    if preset.embedded:
        try:
            source, local = str(minilm_folder()), True
        except ModelError:
            if _cached_folder(preset.source) is None:
                raise
            local = True
    elif Path(preset.source).is_absolute():
        source, local = preset.source, True
    else:
        source, local = _find_on_hub(preset.name, [preset.source], check_hub)

    return ResolvedRetriever(
        name=preset.name,
        title=preset.title,
        source=source,
        local=local,
        origin="preset",
        similarity=preset.similarity,
        max_length=preset.max_length,
        defaults=preset.defaults,
        licence=preset.licence,
        licence_id=preset.licence_id,
        preset=preset,
        kind=preset.kind,
    )


def _from_job(name: str, workspace: Workspace) -> ResolvedRetriever | None:
    if not _JOB_ID.fullmatch(name) or not workspace.job(name).is_dir():
        return None

    job = workspace.job(name)
    spec = whole(JOB_FACTS, job / "spec.json") or {}
    if spec.get("kind", TRAINING) != TRAINING and not has_model(job):
        raise ModelError(f"The job {name} is of kind {spec['kind']} and has no model.", hint="Name a training job.")

    if not has_model(job):
        raise ModelError(
            f"The training job {name} has no model yet.", hint=f"See how it goes with: python -m cdp jobs show {name}"
        )

    title = title_of(spec.get("kind", TRAINING), str(spec.get("name") or name))
    resolved = replace(_from_folder(name, model_folder(job), "job"), title=title)
    # However many trainings lie between.
    begun_with = [began_with(*earlier) for earlier in chain(workspace, name)][-1:]

    base = PRESETS.get(begun_with[0]) if begun_with else None
    if base is None:
        return resolved

    return replace(
        resolved,
        # As it was trained, even if its base is evaluated with another similarity.
        similarity=TRAINED[resolved.kind],
        max_length=base.max_length if base.max_length is None else resolved.max_length,
        defaults=base.defaults,
        licence=base.licence,
        licence_id=base.licence_id,
    )


def chain(workspace: Workspace, retriever: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """(folder, ``spec.json``) of the training, or the test, that made a retriever, then of the one that it started
    from, and so on; nothing for a retriever that was not trained here."""
    seen: set[str] = set()
    while _JOB_ID.fullmatch(retriever) and retriever not in (*PRESETS, *seen):
        seen.add(retriever)
        folder = workspace.job(retriever)
        spec: Any = whole(JOB_FACTS, folder / "spec.json")
        if spec is None or (spec.get("kind", TRAINING) != TRAINING and training_result(folder) is None):
            return
        yield folder, spec
        retriever = began_with(folder, spec)


def began_with(folder: Path, spec: dict[str, Any]) -> str:
    """Return the name of the retriever that a training started from; "" where its record names none."""
    named = spec.get("config", {}).get("retriever") if spec.get("kind", TRAINING) == TRAINING else None
    return str(named or (training_result(folder) or {}).get("retriever") or "")


def _from_folder(name: str, folder: Path, origin: str) -> ResolvedRetriever:
    model_files.check_adapter(folder)
    if not (folder / "modules.json").is_file() and not (folder / "config.json").is_file():
        raise ModelError(
            f"The folder {name} holds no model: neither modules.json nor config.json is there.",
            hint="Name a folder that sentence-transformers or transformers can load.",
        )
    # Before a job is started with it; ``load`` checks again what it then loads.
    model_files.check(folder)
    return _described(name, str(folder), folder, True, origin)


def _described(name: str, source: str, folder: Path | None, local: bool, origin: str) -> ResolvedRetriever:
    """What the small files beside a model say about its use."""
    published, max_length = model_files.usage(folder) if folder is not None else (None, None)
    kind = model_files.kind_of(folder) if folder is not None else DENSE
    similarity = dict(TRAINED[kind])
    if kind != MULTI_VECTOR and published in ("cosine", "dot"):
        similarity["published"] = published

    return ResolvedRetriever(
        name=name,
        title=name,
        source=source,
        local=local,
        origin=origin,
        similarity=similarity,
        max_length=max_length,
        defaults=GENERAL_DEFAULTS,
        licence="See the model's own page.",
        kind=kind,
    )


def in_cache(name: str) -> bool:
    """Return True if a model of the hub is on this machine already."""
    return _may_be_on_hub(name) and any(_cached_folder(candidate) is not None for candidate in _candidates(name))


def _candidates(name: str) -> list[str]:
    """The repositories that a hub name may mean, in the order in which they are looked for."""
    return [name] if "/" in name else [f"sentence-transformers/{name}", name]


def _may_be_on_hub(name: str) -> bool:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    if not _HUB_NAME.fullmatch(name):
        return False
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _cached_folder(repository: str) -> Path | None:
    """The snapshot folder of a hub model in the local cache, or None."""
    from huggingface_hub import try_to_load_from_cache

    for file in ("modules.json", "config.json"):
        path = try_to_load_from_cache(repository, file)
        if isinstance(path, str):
            return Path(path).parent
    return None


def _find_on_hub(name: str, candidates: list[str], check: bool) -> tuple[str, bool]:
    """(hub name, whether it is in the local cache) of the first candidate that exists."""
    if cached := next((candidate for candidate in candidates if _cached_folder(candidate) is not None), None):
        return cached, True
    found = next((each for each in candidates if _exists_on_hub(each, name)), None) if check else candidates[0]
    if found is None:
        raise NotFoundError("preset, training job, folder or hub model", name, known=list(PRESETS))
    return found, False


def _exists_on_hub(repository: str, name: str) -> bool:
    """Ask the hub once, within ``HUB_TIMEOUT_S``. ModelError if it does not answer or refuses."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    answer: list[Exception | None] = []

    def ask() -> None:
        try:
            HfApi().model_info(repository, timeout=HUB_TIMEOUT_S)
            answer.append(None)
        except Exception as error:
            answer.append(error)

    # A thread, for the library's timeout holds for each address of the hub, and not for name resolution.
    thread = threading.Thread(target=ask, daemon=True, name="hub-question")
    thread.start()
    thread.join(HUB_TIMEOUT_S)

    match answer:
        case [None]:
            return True
        case [GatedRepoError()]:
            raise ModelError(
                f"The model {name} is gated.", hint="Accept its terms on the hub and log in with: hf auth login"
            )
        case [RepositoryNotFoundError()]:
            return False

    raise ModelError(
        f"The model {name} is not on this machine, and the model hub cannot be reached to look for it.",
        hint=f"Use {' or '.join(n for n, p in PRESETS.items() if p.embedded)}, a folder, or connect to the network.",
    )
