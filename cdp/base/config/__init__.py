"""Settings of every kind of job, written once.

The form on a page, the option on the command line and the reference in the docs are made from them. Each default has
its reason beside it; an empty one says in its help what then holds.
"""

from __future__ import annotations

from cdp.base.config.filtering import FilterConfig, RoundTripConfig
from cdp.base.config.importing import ResultImportConfig
from cdp.base.config.mining import MiningConfig
from cdp.base.config.serving import ServingConfig
from cdp.base.config.training import DownloadConfig, EvaluationConfig, IndexConfig, TrainingConfig
from cdp.base.config.writing import MetricsConfig, PromptTuningConfig, SynthesisConfig

__all__ = [
    "DownloadConfig",
    "EvaluationConfig",
    "FilterConfig",
    "IndexConfig",
    "MetricsConfig",
    "MiningConfig",
    "PromptTuningConfig",
    "ResultImportConfig",
    "RoundTripConfig",
    "ServingConfig",
    "SynthesisConfig",
    "TrainingConfig",
]
