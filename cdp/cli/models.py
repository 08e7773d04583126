"""Commands on trained models: the list, one model, its card, and giving it to the hub."""

from __future__ import annotations

import argparse
from typing import Any

from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.answers import note, say, warn
from cdp.services.jobs.job_words import size


def _value(model: Any) -> dict[str, Any]:
    return {
        "id": model.id,
        "title": model.title,
        "folder": str(model.folder),
        "base": model.base,
        "query_set": model.query_set,
        "licence": model.licence,
        "bytes": model.bytes,
        "scores": [display.plain(score) for score in model.scores],
        "faults": [display.plain(fault) for fault in model.faults],
    }


def list_(workspace: Workspace, a: argparse.Namespace) -> int:
    """``models list``."""
    from cdp.services import models

    listed = models.list_models(workspace)
    rows = [
        {
            "id": model.id,
            "name": model.title,
            "base": model.base,
            "query set": model.query_set,
            "size": size(model.bytes),
            "evaluations": len(model.scores),
            "not to give away": ", ".join(dict.fromkeys(fault.kind for fault in model.faults)),
        }
        for model in listed
    ]
    empty = "No model yet: train QUERY_SET"
    return say(a, [_value(model) for model in listed], display.table(rows, list(rows[0]) if rows else [], empty))


def show(workspace: Workspace, a: argparse.Namespace) -> int:
    """``models show``."""
    from cdp.services import models

    model = models.show(workspace, a.retriever)
    lines = [
        f"{model.title} ({model.id})",
        f"from {model.base}, on {model.query_set}; licence: {model.licence or 'not stated'}",
        f"{model.folder}: {size(model.bytes)}",
        *(f"  {path:<40} {size(n)}" for path, n in model.files),
        *(f"{score.benchmark}: NDCG@10 {score.after:.2f}{_badges(score)}" for score in model.scores),
        *(fault.sentence.replace("**", "") for fault in model.faults),
    ]
    return say(a, {**_value(model), "files": dict(model.files)}, "\n".join(lines))


def _badges(score: Any) -> str:
    return f" ({', '.join(score.badges)})" if score.badges else ""


def card(workspace: Workspace, a: argparse.Namespace) -> int:
    """``models card``."""
    from cdp.services import models

    text = models.card(workspace, a.retriever, licence=a.licence, datasets=a.dataset)
    return say(a, {"card": text}, text.rstrip("\n"))


def push(workspace: Workspace, a: argparse.Namespace) -> int:
    """``models push``."""
    from cdp.services import models

    done = models.push(
        workspace,
        a.retriever,
        a.repository,
        public=a.public,
        dry_run=a.dry_run,
        allow_leakage=a.allow_leakage,
        allow_incomplete=a.allow_incomplete,
    )
    value = {
        "repository": done.repository,
        "private": done.private,
        "files": dict(done.files),
        "bytes": done.bytes,
        "url": done.url,
        "commit": done.commit,
        **({"card": done.card} if a.dry_run else {}),
    }
    for fault in done.faults:
        warn(fault.replace("**", ""))
    if not a.dry_run:
        whose = "private" if done.private else "open to everyone"
        return say(a, value, f"{done.url} ({whose}), commit {done.commit[:12]}, {size(done.bytes)}")
    rows = [{"file": path, "size": size(n)} for path, n in done.files]
    if not a.json:
        note(f"{done.repository} would be {'private' if done.private else 'open to everyone'}; nothing was sent.")
    return say(
        a, value, f"{display.table(rows, ['file', 'size'], '')}\n{size(done.bytes)} in all\n\n{done.card}".rstrip()
    )


def export(workspace: Workspace, a: argparse.Namespace) -> int:
    """``models export``."""
    from cdp.services import models

    folder, difference = models.export(workspace, a.retriever, a.out)
    value = {"folder": str(folder), "largest_difference": difference}
    return say(a, value, f"{folder}: largest difference of a number {difference:.2g}")
