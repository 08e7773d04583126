"""CDP Studio: complexity-aware training data for dense retrievers. The eleven names for outsiders.

"The paper" in this package is Feng, Nishida, Sakai and Matsumoto, *Complexity-Aware Training for OOD Generalization in
Dense Retrieval*, https://arxiv.org/abs/2602.09448. Its tables, equations and sections are cited by the labels of its
LaTeX source (``tab:cw_threshold``, ``eq:ri``, ``sec:appendix_qd``), which stay the same where printed numbers change.
``docs/METHODS.md`` lists every formula with its source, our reading, and where it is computed.

The eleven names below are the library: ``docs/library.ipynb`` shows each at work. A name is imported when it is first
asked for, so ``import cdp`` loads nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if sys.platform == "win32":
    raise ImportError(
        "CDP Studio needs the file locks and process groups of Linux or macOS. On Windows, install it within WSL 2."
    )

if TYPE_CHECKING:
    from cdp.base.version import __version__ as __version__
    from cdp.complexity import content_words, cw_weights
    from cdp.evaluation import ndcg, search
    from cdp.metrics import dist_sim, paraphrase_ratio, self_bleu
    from cdp.notebook import OpenWorkspace as Workspace
    from cdp.principle import recommend
    from cdp.synthesis.generate import generate
    from cdp.training.loss import WeightedInfoNCELoss

__all__ = [
    "WeightedInfoNCELoss",
    "Workspace",
    "content_words",
    "cw_weights",
    "dist_sim",
    "generate",
    "ndcg",
    "paraphrase_ratio",
    "recommend",
    "search",
    "self_bleu",
]

# Where each is, with the name that it has there where that is another one.
_ROOMS = {
    "__version__": "cdp.base.version",
    "WeightedInfoNCELoss": "cdp.training.loss",
    "Workspace": "cdp.notebook:OpenWorkspace",
    "content_words": "cdp.complexity",
    "cw_weights": "cdp.complexity",
    "dist_sim": "cdp.metrics",
    "generate": "cdp.synthesis.generate",
    "ndcg": "cdp.evaluation",
    "paraphrase_ratio": "cdp.metrics",
    "recommend": "cdp.principle",
    "search": "cdp.evaluation",
    "self_bleu": "cdp.metrics",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, called = _ROOMS[name].partition(":")
    return getattr(importlib.import_module(module), called or name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
