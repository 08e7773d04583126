"""Finding a model before it is loaded: one that is nowhere is known to be missing within seconds."""

from __future__ import annotations

from cdp.base.errors import ModelError, NotFoundError
from cdp.base.workspace import Workspace


def locate(name: str, kind: str, hint: str) -> tuple[str, bool]:
    """(source, whether no network is needed) of a model by hub name or folder; ModelError where there is none."""
    from cdp.retrievers import resolve

    try:
        retriever = resolve(name, Workspace.default())
    except (ModelError, NotFoundError) as error:
        raise ModelError(f"The {kind} {name} cannot be loaded: {error.message}", hint=hint) from None
    return retriever.source, retriever.local


def loading_failed(error: Exception, name: str, kind: str, hint: str) -> ModelError:
    """The error of a library, as one sentence."""
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ModelError(f"The {kind} {name} cannot be loaded: {reason[:300]}", hint=hint)
