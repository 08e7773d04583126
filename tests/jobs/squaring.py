"""What the Ray workers of tests.jobs.workers.crewed do: in a module of its own, for a worker itself is ``__main__``."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from cdp.base.crew import kept
from cdp.base.errors import NotFoundError
from cdp.base.workspace import append_jsonl, write_json

ENVIRONMENT = ("CDP_WORKSPACE", "GOMP_SPINCOUNT", "TOKENIZERS_PARALLELISM", "OMP_NUM_THREADS", "PYTHONPATH")


def square(part: dict[str, Any]) -> dict[str, Any]:
    """Take so long, leave a file, say where it was done."""
    import ray

    folder, number = Path(part["folder"]), part["number"]
    append_jsonl(folder / f"{os.getpid()}.begun.jsonl", [{"number": number}])
    time.sleep(part["seconds"])
    if number == part.get("missing"):
        raise NotFoundError("number", str(number), known=["1", "2"])
    write_json(folder / f"{number}.json", {"square": number**2})
    made = kept("thing", "one", lambda: os.urandom(4).hex())
    umask = os.umask(0o077)
    os.umask(umask)
    node = ray.get_runtime_context().get_node_id()
    return {"pid": os.getpid(), "node": node, "made": made, "umask": umask, "key": os.environ.get("A_KEY", "")[-4:],
            "environment": {name: os.environ.get(name) for name in ENVIRONMENT}}  # fmt: skip
