"""The commands ``workspace …``: taking everything along, bringing it in, clearing away."""

from __future__ import annotations

from cdp.cli.option import Commands, Option, flag, option, repeatable
from cdp.services.workspace.prune_kinds import BY_DEFAULT, PRUNABLE

_FILE = option("file", "the archive, a zip file", metavar="FILE")
_KINDS = "; ".join(f"{name}: {about}" for name, about in PRUNABLE.items())


def _part(name: str, what: str) -> Option:
    return repeatable(name, f"take along this {what}; repeatable", metavar="ID")


COMMANDS: Commands = {
    "workspace export": (
        "workspace.export",
        "write the workspace, or the parts named with all that they rest on, into one archive",
        [
            _FILE,
            _part("--corpus", "corpus"),
            _part("--queries", "query set"),
            _part("--benchmark", "benchmark"),
            _part("--job", "job with all it made"),
            flag("--no-caches", "without model answers and embeddings"),
        ],
    ),
    "workspace import": (
        "workspace.import_",
        "bring an archive into the workspace: all of it or nothing, and nothing is overwritten",
        [_FILE],
    ),
    "workspace prune": (
        "workspace.prune",
        "show what can be cleared away; with --yes clear it away",
        [
            repeatable(
                "--what",
                f"{_KINDS}. Repeatable; {', '.join(BY_DEFAULT)} if left out",
                choices=tuple(PRUNABLE),
                metavar="KIND",
            ),
            flag("--yes", "do it"),
        ],
    ),
}
