"""How benchmarks are published, and the benchmarks that come that way. See cdp.benchmarks.schemas."""

from cdp.base.records import Document, Qrel
from cdp.benchmarks.schemas import Contents, Entry, Part, Schema, SourceQuery
from cdp.benchmarks.schemas.records import columns


def parts(entry):
    return [Part("pairs", entry.repos[0], ("pairs.tsv",))]


def read(entry, files):
    rows = [row for path in files["pairs"] for row in columns(path, 3)]
    return Contents(
        lambda: (Document(f"d{name}", text) for name, _, text in rows),
        lambda: (SourceQuery(name, query) for name, query, _ in rows),
        lambda: (Qrel(name, f"d{name}", 1) for name, _, _ in rows),
    )


SCHEMA = Schema(
    "pairs",
    "Pairs",
    "A query and its document on each line.",
    parts,
    read,
    entries=(Entry("metals", "Metals", repos=("somebody/metals",), documents=3, queries=3),),
)
