"""Settings of ``cdp serve``: what it listens on, who may ask, and how much."""

from __future__ import annotations

from cdp.base.errors import ConfigError
from cdp.base.settings import REQUIRED, Config, option

TOKEN = "CDP_SERVE_TOKEN"
"""The environment variable that holds the token. It is never an argument: those can be read by every account."""


class ServingConfig(Config):
    """Search and embeddings over HTTP."""

    retriever: str = option(
        REQUIRED, "A preset, a training's id or name, any model's name or folder, or bm25 (bm25:fr …).", holds="model"
    )
    corpus: str = option("", "A corpus, or benchmark:NAME, to search. Empty: embeddings alone.")
    name: str = option("", "What callers write as model. Empty: the retriever's name; of a folder, its last part.")
    host: str = option(
        "127.0.0.1",
        "The address to listen on; any other than loopback needs a token, and so does a proxy.",
        reason="Nobody but this machine can ask.",
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
        "", "Host names by which it may be called, separated by commas; on loopback, beside localhost."
    )
    proxy: str = option("", "The address of a proxy whose X-Forwarded-For says who asks. Empty: nobody's is believed.")
    device: str = option(
        "cpu",
        "Where the model runs.",
        reason="A training finds its GPU free; auto takes one if there is one.",
        choices=("cpu", "auto"),
    )
    threads: int | None = option(
        None,
        "Processor threads of the model. Empty: as many as torch takes; 1 for a static model, whose batches are small.",
        minimum=1,
        maximum=1024,
    )
    batch_texts: int = option(
        64,
        "Texts that the model reads at once, whoever sent them.",
        reason="Larger batches of short texts are hardly faster on a CPU and make everybody wait for all.",
        unit="texts",
        minimum=1,
        maximum=4096,
    )
    batch_wait_ms: float = option(
        2.0,
        "How long a batch waits for the texts of other requests that are on their way.",
        reason="Shorter than what a transformer takes for one text; nobody waits while no other request is open.",
        unit="ms",
        minimum=0,
        maximum=1000,
    )
    max_inputs: int = option(
        2048,
        "Texts or queries in one request.",
        reason="OpenAI's own limit, which its clients are made for.",
        unit="texts",
        minimum=1,
        maximum=100_000,
    )
    max_characters: int = option(
        100_000,
        "Characters of one text.",
        reason="Far more than any encoder reads: it cuts at some hundred or thousand tokens.",
        unit="characters",
        minimum=1,
        maximum=10_000_000,
    )
    max_body_mb: float = option(
        8.0,
        "Size of a request.",
        reason="2,048 texts of 4,000 characters.",
        unit="MB",
        minimum=0.001,
        maximum=1024,
    )
    max_queue: int = option(
        8192,
        "Texts that may wait; who comes after that is told when to try again.",
        reason="Four requests of the largest size, or thousands of small ones.",
        unit="texts",
        minimum=1,
        maximum=10_000_000,
    )
    max_connections: int = option(
        1024,
        "Open connections; further ones are closed at once.",
        reason="A connection takes some 20 kB, and a process may usually open 1,024 files or more.",
        minimum=1,
        maximum=100_000,
    )
    rate: float | None = option(
        None,
        "Requests per second of one client; 0: any number. Empty: any number on loopback without a proxy, else 50.",
        reason="Twice as many may come at once. On loopback all clients share one address.",
        unit="requests per second",
        minimum=0,
        maximum=1_000_000,
    )
    timeout_s: float = option(
        60.0,
        "How long a request may take once it has been read.",
        reason="Long enough for the largest request in a full queue on two cores with a small model.",
        unit="seconds",
        minimum=0.1,
        maximum=3600,
    )
    read_timeout_s: float = option(
        15.0,
        "How long a client may take to send a request, or to take an answer.",
        reason="A slow line sends 8 MB in it; one that sends a byte a minute keeps nothing open.",
        unit="seconds",
        minimum=0.1,
        maximum=3600,
    )
    grace_s: int = option(
        30,
        "How long a stop waits for what is in flight.",
        reason="Shorter than the 90 seconds after which systemd kills.",
        unit="seconds",
        minimum=0,
        maximum=3600,
    )
    access_log: bool = option(
        True,
        "A line on stderr per request: who, what, how long; never what was asked.",
        reason="Without it nobody can say afterwards who was refused and why.",
    )
    log_texts: bool = option(
        False,
        "Add the beginnings of the texts and queries to that line.",
        reason="What people search for is theirs.",
    )

    def check(self) -> None:
        if self.max_queue < self.max_inputs:
            raise ConfigError(
                f"max_queue ({self.max_queue:,}) is less than max_inputs ({self.max_inputs:,}).",
                hint="Let the queue be at least as long as the largest request, or that is never taken.",
            )
