"""What the paper's own size would take, without starting anything: models, downloads, hours and dollars.

A dry run: sizes and licences are the registry's and the presets', prices the price table's. Speeds of a GPU are
assumptions, written out below; a short run on the machine itself replaces them (``python -m cdp study plan``).
"""

from __future__ import annotations

from cdp.base.text import duration
from cdp.benchmarks import registry
from cdp.llm.prices import load_price
from cdp.retrievers import PRESETS
from cdp.studies.text import table

# 31 datasets of the paper, HotpotQA counted in both of its groups.
GROUPS = ("TREC-DL", "BEIR", "BRIGHT", "Multi-hop")

DOCUMENTS, PER_DOC, MOST = 8_000, (1, 2, 5, 10, 20), 20
SEEDS, METHODS = 3, ("diverse", "paraphrase")

# Tokens of a prompt with an MS MARCO passage and of one query: assumptions.
INPUT_TOKENS, OUTPUT_TOKENS = 400 + 180, 16

MODEL = "gpt-4o-mini"

# {preset: (training pairs a second, texts encoded a second, gigabytes)} on one GPU of 80 GB: assumptions.
RETRIEVERS = {
    "contriever": (1_500.0, 3_000.0, 0.44),
    "retromae": (1_500.0, 3_000.0, 0.44),
    "qwen3-embedding-0.6b": (180.0, 700.0, 1.2),
}

# An assumption.
DOLLARS_PER_GPU_HOUR = 3.0


def text() -> str:
    """The dry run, as Markdown."""
    entries = {
        entry.name: entry
        for entry in registry.entries()
        if not entry.part_of and any(group in GROUPS for group in entry.groups)
    }

    collections = {(entry.documents, entry.text_bytes): entry for entry in entries.values()}  # MS MARCO is there twice
    texts = sum((entry.documents or 0) for entry in collections.values())
    download = sum((entry.text_bytes or 0) for entry in collections.values())
    price = load_price(MODEL)
    requests = DOCUMENTS * len(METHODS)
    cost = None

    if price is not None:
        tokens_in, tokens_out = requests * INPUT_TOKENS, requests * MOST * OUTPUT_TOKENS
        cost = (tokens_in * price.input + tokens_out * price.output) / 1e6

    rows, total = [], 0.0
    for name, (pairs_a_second, texts_a_second, _) in RETRIEVERS.items():
        preset = PRESETS[name]
        epochs = int(preset.defaults["epochs"].value or 1)
        seen = sum(DOCUMENTS * m for m in PER_DOC) * len(METHODS) * SEEDS * epochs
        trainings = len(PER_DOC) * len(METHODS) * SEEDS
        seconds = seen / pairs_a_second + (trainings + 1) * texts / texts_a_second
        total += seconds
        rows.append([name, preset.source, preset.licence, str(trainings), f"{seen:,}", f"{texts:,}", duration(seconds)])

    lines = [
        "# The paper's own size: what it would take",
        "",
        "Nothing is started. Prices and speeds are assumptions where it says so; whole collections are encoded once "
        "for each training.",
        "",
        "## Models",
        "",
        table(["Retriever", "Model", "Licence", "Trainings", "Pairs seen", "Texts per evaluation", "GPU time"], rows),
        "",
        f"In all {duration(total)} of one GPU, at {DOLLARS_PER_GPU_HOUR:.2f} dollars an hour about "
        f"{total / 3600 * DOLLARS_PER_GPU_HOUR:,.0f} dollars. Early stopping on a dev set (the paper's) shortens it.",
        "",
        "## Queries",
        "",
        f"{requests:,} requests to {MODEL} ({DOCUMENTS:,} MS MARCO documents, {MOST} queries each, {len(METHODS)} "
        f"methods; {INPUT_TOKENS} tokens in, {OUTPUT_TOKENS} out per query): "
        + (f"about {cost:,.2f} dollars, half of it by batch." if cost is not None else "its price is not known."),
        "",
        "## Downloads",
        "",
        f"{len(entries)} entries, {download / 1e9:,.1f} GB of text as read, {texts:,} documents; models "
        f"{sum(size for *_, size in RETRIEVERS.values()):.1f} GB. Embeddings of an evaluation in fp16: "
        f"{texts * 768 * 2 / 1e9:,.0f} GB.",
        "",
        table(
            ["Benchmark", "Documents", "Queries", "CW", "Licence", "Command"],
            [
                [
                    e.name, f"{e.documents or 0:,}", f"{e.queries or 0:,}", "–" if e.cw is None else f"{e.cw:.2f}",
                    e.licence, f"python -m cdp benchmarks download {e.name}",
                ]
                for e in entries.values()
            ],
        ),
        "",
        "## Commands",
        "",
        "Those of the table (of CQADupStack each forum), then",
        "",
        "    python -m cdp corpus add MSMARCO.jsonl --name msmarco && python -m cdp study run paper-full --wait",
    ]  # fmt: skip
    return "\n".join(lines)
