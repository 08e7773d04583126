"""The servers: what is installed for each, how it is started, and under which name its model answers."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.endpoints import models
from tests.support import free_port
from tests.synthesis.server import KEY, MODEL, ChatServer, chat_server

# Loading torch and a model took 30 s on two cores shared with other work.
READY_WITHIN_S = 240.0
INSTALL_WITHIN_S = 3600.0

# Installed by itself before all others: else some of them bring builds for GPUs, which are gigabytes.
TORCH = "torch==2.13.0"

# No server looks for models on a hub, asks for newer prices, or reports that it was used.
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "INFINITY_ANONYMOUS_USAGE_STATS": "0",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}


class NotInstalledError(Exception):
    """A counterpart that cannot be had on this machine; the message says why."""


@dataclass(frozen=True)
class Counterpart:
    """One server. ``words`` are its command line, found in the environment's ``bin/``; ``{port}`` is filled in."""

    name: str
    title: str
    packages: Sequence[str]
    model: str
    words: Sequence[str]
    ready: str
    """The path that answers once the server does."""
    chats: bool = True
    embeds: bool = False
    torch: bool = False
    made: tuple[str, str] | None = None
    """Kind of tiny model and its place in the counterpart's folder (``models.KINDS``)."""
    upstream: bool = False
    """It stands before a server of ours."""
    build: dict[str, str] = field(default_factory=dict)
    """Environment variables of the installation."""
    context: int = 0
    """Tokens that its model reads and writes together; 0 for none."""

    @property
    def version(self) -> str:
        """The version of the package that is tried."""
        return self.packages[0].partition("==")[2]


COUNTERPARTS = (
    Counterpart(
        "transformers", "`transformers serve`", ("transformers[serving]==5.23.0", "fastapi==0.165.0"), "tiny-random",
        ("transformers", "serve", "tiny-random", "--host", "127.0.0.1", "--port", "{port}", "--device", "cpu"),
        "/health", torch=True, made=("decoder", "tiny-random"), context=models.CONTEXT,
    ),
    Counterpart(
        "llama-cpp", "llama-cpp-python's server",
        ("llama-cpp-python[server]==0.3.36", "gguf==0.19.0", "fastapi==0.165.0"), "tiny-random",
        ("python", "-m", "llama_cpp.server", "--model", "tiny-random.gguf", "--model_alias", "tiny-random",
         "--host", "127.0.0.1", "--port", "{port}", "--n_ctx", str(models.CONTEXT)),
        "/v1/models", made=("gguf", "tiny-random.gguf"), context=models.CONTEXT,
        # A build without pictures and without the machine's own instructions: six minutes on one core.
        build={
            "CMAKE_BUILD_PARALLEL_LEVEL": "1",
            "CMAKE_ARGS": "-DLLAVA_BUILD=OFF -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF"
            " -DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_CXX_FLAGS_RELEASE=-O1",
        },
    ),
    Counterpart(
        # Later releases name companions that the package index does not have.
        "litellm", "LiteLLM's proxy", ("litellm[proxy]==1.106.12", "fastapi==0.165.0"), MODEL,
        ("litellm", "--config", "litellm.yaml", "--host", "127.0.0.1", "--port", "{port}", "--telemetry", "False"),
        "/health/liveliness", embeds=True, upstream=True,
    ),
    Counterpart(
        "infinity", "infinity-emb", ("infinity-emb[torch,server]==0.0.78", "transformers==4.57.6"), "tiny-embedder",
        ("infinity_emb", "v2", "--model-id", "tiny-embedder", "--served-model-name", "tiny-embedder",
         "--host", "127.0.0.1", "--port", "{port}", "--url-prefix", "/v1", "--engine", "torch", "--device", "cpu"),
        "/v1/models", chats=False, embeds=True, torch=True, made=("embedder", "tiny-embedder"),
    ),
)  # fmt: skip

# What LiteLLM is told about the server behind it; the key is our server's own.
LITELLM_CONFIG = """
model_list:
  - model_name: {model}
    litellm_params: {{model: openai/{model}, api_base: "{url}", api_key: {key}}}
"""


def install(counterpart: Counterpart, folder: Path) -> None:
    """Make the counterpart's environment in ``folder`` unless it is there with these versions; NotInstalledError."""
    done, wanted = folder / ".installed", "\n".join(counterpart.packages)
    if done.exists() and done.read_text() == wanted:
        return
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
    steps = {"a virtual environment": [sys.executable, "-m", "venv", str(folder)]}
    if counterpart.torch:
        steps[TORCH] = [*pip, TORCH]
    steps[", ".join(counterpart.packages)] = [*pip, *counterpart.packages]
    environment = {**os.environ, **counterpart.build}
    for what, words in steps.items():
        ended = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=INSTALL_WITHIN_S)
        if ended.returncode:
            lines = [line for line in ended.stderr.splitlines() if line.strip()] or ["no reason given"]
            said = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1])
            raise NotInstalledError(f"{what} cannot be installed here: {said[:300]}")
    done.write_text(wanted)


class Server:
    """A counterpart as a process. ``upstream`` is our server behind it, where there is one."""

    def __init__(self, counterpart: Counterpart, environment: Path, folder: Path, upstream: ChatServer | None) -> None:
        self.counterpart, self.environment, self.folder, self.upstream = counterpart, environment, folder, upstream
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.key = f"sk-{secrets.token_hex(24)}" if counterpart.upstream else "none"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers; RuntimeError with the end of its log if it does not."""
        filled = [word.format(port=self.port) for word in self.counterpart.words]
        log = self.folder / "server.log"
        with open(log, "ab") as file:
            self._process = subprocess.Popen(
                [str(self.environment / "bin" / filled[0]), *filled[1:]], cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, **QUIET, "HF_HOME": str(self.folder / "hub"), "LITELLM_MASTER_KEY": self.key},
            )  # fmt: skip
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if self._answers():
                return
            time.sleep(0.2)
        self.kill()
        raise RuntimeError(f"{self.counterpart.title} does not answer: {log.read_text(errors='replace')[-1500:]}")

    def kill(self) -> None:
        """End it at once, as a machine that fails does."""
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _answers(self) -> bool:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{self.counterpart.ready}", headers={"Authorization": f"Bearer {self.key}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False


@contextmanager
def started(counterpart: Counterpart, environment: Path, folder: Path) -> Iterator[Server]:
    """Write what the counterpart loads, start it, and end it afterwards."""
    folder.mkdir(parents=True)
    if counterpart.made is not None:
        kind, place = counterpart.made
        python = str(environment / "bin" / "python")
        made = subprocess.run([python, models.__file__, kind, str(folder / place)], capture_output=True, text=True)
        if made.returncode:
            raise RuntimeError(f"The tiny model could not be written: {made.stderr[-1500:]}")
    with ExitStack() as ends:
        upstream = None
        if counterpart.upstream:
            upstream = ends.enter_context(chat_server())
            config = LITELLM_CONFIG.format(model=MODEL, url=upstream.url, key=KEY)
            (folder / "litellm.yaml").write_text(config)
        server = Server(counterpart, environment, folder, upstream)
        ends.callback(server.kill)
        server.start()
        yield server
