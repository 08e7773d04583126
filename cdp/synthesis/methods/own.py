"""A user's own prompt: any template with ``{document}`` and ``{M}`` in it, known by its hash."""

from __future__ import annotations

from cdp.base.errors import ConfigError
from cdp.synthesis.methods.base import Method

NAME = "own"


def own_method(template: str) -> Method:
    """The method with that template; ConfigError names what is missing in it."""
    missing = [name for name in ("{document}", "{M}") if name not in template]
    if missing:
        raise ConfigError(
            f"Your prompt lacks {' and '.join(missing)}.",
            hint="Write {document} where the document goes and {M} for the number of queries.",
        )
    return Method(
        name=NAME,
        title="Your own prompt",
        help="Your own template; its answer is read as a list of M queries.",
        template=template,
        kind="own",
        order=90,
    )
