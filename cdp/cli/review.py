"""Commands of the query workbench."""

from __future__ import annotations

import argparse

from cdp.base.config import FilterConfig, MiningConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.answers import config_of, say, settings, started, warn_incomplete

CHOICE = ("rank_above", "by", "duplicate", "flagged", "formats", "cw_from", "cw_to", "words_from", "words_to")
"""The options that choose queries; ``decision`` besides."""


def usable(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries usable``: how many, and why the others are not."""
    from cdp.services import queries
    from cdp.services.queries import review

    query_set = queries.show(workspace, a.id)
    result = review.usability(workspace, query_set, review.whole_table(workspace, query_set))
    by = f"round-trip rank by {', '.join(result.by)}" if result.by else "round-trip rank not measured"
    lines = [f"{result.usable:,} of {result.n:,} queries are usable ({result.share:.1%}; {by})"]
    lines += [f"  {reason}: {n:,}" for reason, n in result.reasons.items()]
    return say(a, {"id": query_set.id, **display.plain(result), "share": result.share}, "\n".join(lines))


def round_trip(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries round-trip``: as a job."""
    from cdp.services.queries import filtering

    more = {name: int(value) for name, value in settings(a).items() if name == "gpus" and value}
    unknown = settings(a).keys() - {"gpus"}
    if unknown:
        raise ConfigError(f"There is no setting {min(unknown)!r} here.", hint="There is: gpus.")
    return started(workspace, a, filtering.start_round_trip(workspace, a.id, a.by, **more))


def filter_(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries filter``: as a job."""
    from cdp.services.queries import filtering

    names = ("round_trip_rank", "by", "cross_encoder", "at_least", "usable", "name")
    given = {name: value for name in names if (value := getattr(a, name)) not in (None, "")}
    config = FilterConfig.from_dict({**given, **settings(a), "query_set": a.id})
    return started(workspace, a, filtering.start_filter(workspace, config))


def mine(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries mine``: start it."""
    from cdp.services.queries import filtering

    config = config_of(MiningConfig, a, "retriever", "negatives", "cross_encoder", "name", query_set=a.id)
    warn_incomplete(workspace, a.id)
    return started(workspace, a, filtering.start_mining(workspace, config))


def decide(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries decide``: about named queries, or all that a filter chooses."""
    from cdp.services.queries import review

    choice = {name: value for name in CHOICE if (value := getattr(a, name)) not in (None, "", False)}
    if a.decision:
        choice["decision"] = a.decision
    if not a.query and not choice.keys() - {"by"}:
        raise ConfigError(
            "Neither queries nor a filter are named.", hint="Name --query ID, or --flagged, --rank-above 10 …"
        )
    if a.query and choice.keys() - {"by"}:
        raise ConfigError("Queries are named, and a filter too.", hint="Use one of the two.")
    if a.query:
        n = review.decide(workspace, a.id, a.query, a.verdict, text=a.text)
    else:
        n = review.decide_all(workspace, a.id, review.QueryChoice.from_dict(choice), a.verdict)
    return say(
        a, {"id": a.id, "decision": a.verdict, "queries": n}, f"{a.verdict}: {display.many(n, 'query', 'queries')}"
    )


def reviewed(workspace: Workspace, a: argparse.Namespace) -> int:
    """``queries reviewed``: the set that the decisions leave."""
    from cdp.services.queries import review

    made = review.reviewed(workspace, a.id, name=a.name, only_accepted=a.only_accepted)
    q = made.query_set
    text = f"{q.id}: {q.n_queries:,} queries, {made.dropped:,} left out, {made.rewritten:,} rewritten"
    return say(a, {**display.plain(q), "left_out": made.dropped, "rewritten": made.rewritten}, text)
