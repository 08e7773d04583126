"""The command that searches, and its options."""

from __future__ import annotations

from cdp.cli.option import Commands, flag, option

COMMANDS: Commands = {
    "search": (
        "search.search",
        "what up to three retrievers retrieve for a query, side by side",
        [
            option("query", "the query; one that begins with -- goes to the end, after a -- of its own"),
            option(
                "--retriever",
                "bm25, a preset, a training's id or name, or a model's name or folder; up to three times",
                action="append",
                required=True,
            ),
            option(
                "--corpus", "a corpus (id, name or beginning), or a benchmark, whose documents it is", required=True
            ),
            option("-k", "documents to show", dest="k", type=int, default=10, metavar="N"),
            flag("--index", "index the documents first where that takes long, as a job, and wait for it"),
            flag("--keep-warm", "leave the search process running, so that the next query is answered at once"),
        ],
    ),
}
