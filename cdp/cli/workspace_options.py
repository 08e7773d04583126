"""The commands ``workspace …``: taking everything along, bringing it in, clearing away."""

from __future__ import annotations

from typing import Any

from cdp.services.workspace.backup import BY_DEFAULT, PRUNABLE

Option = tuple[str, dict[str, Any]]


def _part(name: str, what: str) -> Option:
    return (name, {"action": "append", "default": [], "metavar": "ID", "help": f"take along this {what}; repeatable"})


def workspace_commands() -> dict[str, tuple[str, str, list[Option]]]:
    """Command words → (handler's name, help, options)."""
    file: Option = ("file", {"metavar": "FILE", "help": "the archive, a zip file"})
    kinds = "; ".join(f"{name}: {about}" for name, about in PRUNABLE.items())
    return {
        "workspace export": (
            "workspace.export",
            "write the workspace, or the parts named with all that they rest on, into one archive",
            [
                file,
                _part("--corpus", "corpus"),
                _part("--queries", "query set"),
                _part("--benchmark", "benchmark"),
                _part("--job", "job with all it made"),
                ("--no-caches", {"action": "store_true", "help": "without model answers and embeddings"}),
            ],
        ),
        "workspace import": (
            "workspace.bring",
            "bring an archive into the workspace: all of it or nothing, and nothing is overwritten",
            [file],
        ),
        "workspace prune": (
            "workspace.prune",
            "show what can be cleared away; with --yes clear it away",
            [
                (
                    "--what",
                    {
                        "action": "append",
                        "default": [],
                        "choices": tuple(PRUNABLE),
                        "metavar": "KIND",
                        "help": f"{kinds}. Repeatable; {', '.join(BY_DEFAULT)} if left out",
                    },
                ),
                ("--yes", {"action": "store_true", "help": "do it"}),
            ],
        ),
    }
