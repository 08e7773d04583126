"""Settings of ``cdp serve``."""

from __future__ import annotations

from cdp.base.settings import REQUIRED, Config, option

# The environment variable that holds the token. It is never an argument: every account can read those.
TOKEN = "CDP_SERVE_TOKEN"


class ServingConfig(Config):
    """Search and embeddings over HTTP."""

    retriever: str = option(
        REQUIRED, "A preset, a training's id or name, any model's name or folder, or bm25 (bm25:fr …).", holds="model"
    )
    corpus: str = option("", "A corpus, or benchmark:NAME, to search. Empty: embeddings only.")
    name: str = option("", "What callers write as model. Empty: the retriever's name; of a folder, its last part.")
    host: str = option(
        "127.0.0.1",
        "The address to listen on; any other than loopback needs a token.",
        reason="Only this machine can ask.",
    )
    port: int = option(
        8600,
        "The port; 0 takes a free one and prints it.",
        reason="Beside the dashboard's 8501, and away from the ports of usual development servers.",
        minimum=0,
        maximum=65535,
    )
    token_file: str = option(
        "", f"A file that holds the token. Empty: {TOKEN} of the environment, if that is set.", holds="path"
    )
    allowed_hosts: str = option(
        "", "Further host names by which it may be called, separated by commas; they need a token."
    )
    device: str = option(
        "cpu",
        "Where the model runs.",
        reason="A training finds its GPU free; auto takes one if there is one.",
        choices=("cpu", "auto"),
    )
    batch_texts: int = option(
        64,
        "Texts that the model reads at once, of all requests that wait.",
        reason="Larger batches of short texts are hardly faster on a CPU and delay all of their requests.",
        unit="texts",
        minimum=1,
        maximum=4096,
    )
    max_inputs: int = option(
        2048,
        "Texts or queries in one request.",
        reason="OpenAI's own limit, which its clients are made for.",
        unit="texts",
        minimum=1,
        maximum=100_000,
    )
    max_body_mb: float = option(
        8.0,
        "Size of a request.",
        reason="2,048 texts of 4,000 characters.",
        unit="MB",
        minimum=0.001,
        maximum=1024,
    )
    max_connections: int = option(
        1024,
        "Open connections; requests on further ones get a 503.",
        reason="A connection takes some 20 kB, and a process may usually open 1,024 files or more.",
        minimum=1,
        maximum=100_000,
    )
