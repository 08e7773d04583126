"""Sources of a study that a filter makes of others: the set where it is there, else one that a job makes first."""

from __future__ import annotations

import dataclasses

from cdp import query_sets
from cdp.base.config import FilterConfig
from cdp.base.workspace import Workspace
from cdp.services.queries import filtering
from cdp.studies import StudySource
from cdp.studies.plan import FILTERED, FILTERED_BY, counted

NONE = "none"
"""The filter that keeps every query."""

ANY = "any"
"""The name of a set that is not there yet, where only a filter's tests are checked."""


def source_of(workspace: Workspace, source: StudySource, text: str) -> StudySource:
    """What the filter of this text makes of a source. ConfigError or NotFoundError for a filter that cannot be run."""
    if text == NONE:
        return source
    text = filtering.checked(workspace, FilterConfig.from_text(source.query_set or ANY, text)).text
    label = f"{source.label}{FILTERED_BY}{text}"
    wanted = dataclasses.replace(source, label=label, kind=FILTERED, filter=text, made_from=source.query_set)
    if source.query_set:
        made = query_sets.find_filtered(workspace, query_sets.load(workspace, source.query_set), text)
        if made is not None:
            return counted(workspace, dataclasses.replace(wanted, query_set=made.id))
    return dataclasses.replace(wanted, query_set="", counts=())
