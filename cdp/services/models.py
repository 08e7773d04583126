"""Trained models: hub upload, export to a folder.

``HF_ENDPOINT`` names another hub. Authentication comes from ``HF_TOKEN`` or ``hf auth login``, never from a setting: a
token on a command line stands in the shell's history and in lists of processes.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdp.base import permission
from cdp.base.errors import CdpError, ConfigError, InputError
from cdp.base.locks import staging
from cdp.base.version import __version__
from cdp.base.workspace import Workspace
from cdp.benchmarks.download import first_line, is_network
from cdp.evaluation.card import FOLDER, NO_SCORES
from cdp.results.models import Score, TrainedModel, show
from cdp.retrievers import spelling
from cdp.retrievers.resolve import card_file
from cdp.services import access

FLAGS = {"leaked": "--allow-leakage", "incomplete": "--allow-incomplete"}


class HubError(CdpError):
    """The hub could not be reached, or refused."""

    kind = "network"


@access.runs
def push(
    workspace: Workspace,
    name: str,
    repository: str,
    *,
    public: bool = False,
    allow_leakage: bool = False,
    allow_incomplete: bool = False,
) -> tuple[TrainedModel, dict[str, Any]]:
    """Upload a trained model as one commit, private unless ``public``; return it and where it is.

    ConfigError for a malformed name, a model that saw judged queries or was not trained to its end (unless allowed:
    then its card says so), no token, or a public repository without ``public``. HubError where the hub refuses.
    """
    if not re.fullmatch(r"[\w.\-]+/[\w.\-]+", repository):
        raise ConfigError(f"{repository!r} is no name of a repository.", hint="Write owner/name.")

    model = show(workspace, name)
    allowed = {"leaked": allow_leakage, "incomplete": allow_incomplete}
    for fault in model.faults:
        if not allowed[fault.kind]:
            raise ConfigError(
                f"{model.title} needs your consent to be published: {fault.sentence.replace('**', '')}",
                hint=f"Allow it: {FLAGS[fault.kind]}; the card says it at its top.",
            )

    workspace.uploads.mkdir(parents=True, exist_ok=True)

    with staging(workspace.uploads) as incoming:
        folder = _copy(model, incoming / "model", repository)
        return model, _upload(model, folder, repository, public)


def _copy(model: TrainedModel, folder: Path, repository: str) -> Path:
    """Copy a model with its card to a new folder, in the spelling that the tested readers load; return the folder."""
    shutil.copytree(model.folder, folder, ignore=shutil.ignore_patterns(".*"))
    # An earlier version of CDP Studio may have saved it.
    spelling.respell(folder)
    card_file(folder).write_text(_published(model, repository), encoding="utf-8")
    return folder


def _published(model: TrainedModel, repository: str) -> str:
    """Return the card to give away: loads the model from there, has faults under its title and a table of scores."""
    file = card_file(model.folder)
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    text = text.replace(f'"{FOLDER}"', f'"{repository}"').replace(NO_SCORES, _table(model.scores))
    missing = "".join(f"> {fault.sentence}\n\n" for fault in model.faults if f"> {fault.sentence}" not in text)
    return re.sub(r"(?m)^# .*\n\n?", lambda title: f"{title[0].rstrip()}\n\n{missing}", text, count=1)


def _table(scores: Sequence[Score]) -> str:
    rows = [
        f"| {s.benchmark} | {s.protocol} | {s.queries:,} | {s.ndcg:.2f} | {', '.join(s.badges) or '–'} |"
        for s in scores
    ]
    head = ["| Benchmark | Protocol | Queries | NDCG@10, percent | To be read with |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows]) if rows else "Not evaluated yet."


def _upload(model: TrainedModel, folder: Path, repository: str, public: bool) -> dict[str, Any]:
    from huggingface_hub import CommitOperationAdd, HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError

    if not get_token():
        raise ConfigError("You are not logged in to the hub.", hint="Log in with hf auth login, or set HF_TOKEN.")

    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, library_name="cdp-studio", library_version=__version__)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    operations = [CommitOperationAdd(path.relative_to(folder).as_posix(), str(path)) for path in files]
    message = f"{model.title}, trained with CDP Studio {__version__} ({model.result['model_hash']})".splitlines()[0]

    try:
        if not api.repo_exists(repository):
            api.create_repo(repository, private=not public)

        private = bool(api.model_info(repository).private)
        if not public and not private:
            raise ConfigError(
                f"{repository} is there already, and open to everyone.",
                hint="Name another repository, or say --public.",
            )

        done = api.create_commit(repository, operations, commit_message=message)
    except CdpError:
        raise
    except Exception as error:
        if is_network(error):
            raise HubError(f"The hub cannot be reached: {first_line(error)}", hint="Is there a network?") from error
        if not isinstance(error, (HfHubHTTPError, RuntimeError, ValueError)):
            raise

        reason = first_line(getattr(error, "server_message", "") or error)
        hint = "Try again later, or log in with a token that may write there: hf auth login, or HF_TOKEN."
        raise HubError(f"The hub did not take {repository}: {reason}", hint=hint) from error

    return {"repository": repository, "private": private, "url": f"{api.endpoint}/{repository}", "commit": done.oid}


@access.runs
def export(workspace: Workspace, name: str, out: str) -> Path:
    """Copy a trained model, with its scores on its card, to a new folder; return it. InputError if it exists."""
    model, target = show(workspace, name), permission.to_write(out).resolve()
    if target.exists():
        raise InputError(f"There is a file or folder {target} already.", hint="Name a new folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with staging(target.parent) as incoming:
        # Not the path: the folder is read elsewhere.
        _copy(model, incoming / target.name, FOLDER).rename(target)
    return target
