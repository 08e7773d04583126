"""The measures of query sets, one module each. Adding a measure is adding a file that declares a ``Measure``."""

from __future__ import annotations

from cdp.base.registry import Registry
from cdp.metrics.measure import Measure

MEASURES: Registry[Measure] = Registry("measure", Measure, __name__)
