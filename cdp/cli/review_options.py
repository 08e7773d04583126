"""The commands of the query workbench: round-trip ranks, filters, decisions about single queries."""

from __future__ import annotations

from cdp.base.config import FilterConfig, MiningConfig, RoundTripConfig
from cdp.cli.option import ID, NAME, SET, WAIT, Commands, Option, flag, option, setting
from cdp.query_sets.formats import FORMATS
from cdp.query_sets.review import DECISIONS

WHICH: list[Option] = [
    option("--query", "a query's id (DOCUMENT-POSITION); repeatable", action="append", default=[], metavar="ID"),
    option("--rank-above", "those that do not find their document within this round-trip rank", type=int),
    option("--by", "whose round-trip rank is meant", default="bm25"),
    flag("--duplicate", "those that repeat an earlier query of their document"),
    flag("--flagged", "those that are no query: refusals, the prompt, JSON, another language"),
    option("--formats", f"those of these formats, separated by commas: {', '.join(FORMATS)}"),
    option("--cw-from", "those with at least so many content words", type=int),
    option("--cw-to", "those with at most so many content words", type=int),
    option("--words-from", "those with at least so many words", type=int),
    option("--words-to", "those with at most so many words", type=int),
    option("--decision", "those that were decided so", choices=("undecided", *DECISIONS[:3])),
]

COMMANDS: Commands = {
    "queries usable": (
        "review.usable",
        "the share of usable queries of a set, and what makes the others unusable",
        [ID],
    ),
    "queries round-trip": (
        "review.round_trip",
        "at which rank each query finds the document it was written for, as a job",
        [ID, setting(RoundTripConfig, "--by"), SET, WAIT],
    ),
    "queries filter": (
        "review.filter_",
        "a new set without queries that fail a test: round-trip rank, a cross-encoder's score, nonsense; as a job",
        [
            ID,
            option("--round-trip-rank", FilterConfig.settings()["round_trip_rank"].help, type=int),
            setting(FilterConfig, "--by"),
            setting(FilterConfig, "--cross-encoder"),
            option("--at-least", FilterConfig.settings()["at_least"].help, type=float),
            flag("--usable", FilterConfig.settings()["usable"].help),
            NAME,
            SET,
            WAIT,
        ],
    ),
    "queries mine": (
        "review.mine",
        "a copy of a set with hard negatives for its queries, by sentence-transformers' mine_hard_negatives; as a job",
        [
            ID,
            setting(MiningConfig, "--retriever"),
            setting(MiningConfig, "--negatives"),
            setting(MiningConfig, "--cross-encoder"),
            NAME,
            SET,
            WAIT,
        ],
    ),
    "queries decide": (
        "review.decide",
        "accept, reject, edit or clear single queries, by id or all that a filter chooses",
        [
            ID,
            option("verdict", "what is decided", choices=DECISIONS),
            option("--text", "for edit: the query's new text"),
            *WHICH,
        ],
    ),
    "queries reviewed": (
        "review.reviewed",
        "a new set of what the decisions leave: without rejected queries, edited ones rewritten",
        [ID, NAME, flag("--only-accepted", "leave out undecided queries too")],
    ),
}
