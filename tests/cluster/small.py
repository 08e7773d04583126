"""A Ray cluster on this machine: ``python -m tests.cluster.small``, a head without CPUs and two nodes with one each, or
as many nodes as numbers are named, each with so many CPUs.

It prints its address and then obeys, a line at a time: ``kill <node id>``, ``kill head``, ``add <CPUs>`` for a node,
``return`` for a new head at the old address with new nodes. At the end of its input it takes everything down: whoever
starts it may die in any way.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from typing import Any

# Ray would start a Python process for each CPU before there is anything to do, and count what each node does.
os.environ.update(
    {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_prestart_worker_first_driver": "0",
        "RAY_enable_metrics_collection": "0",
    }
)
STORE = 80 * 2**20


class Obedient:
    """The cluster, and what may be asked of it."""

    def __init__(self, cpus: list[int]) -> None:
        self.cpus = cpus
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        # Where another cluster runs on this machine, its agents have Ray's own port, and no job could be submitted to
        # this one; and Ray's own folder names the newest cluster, to which the Ray workers of our jobs would go.
        self.common: dict[str, Any] = {
            "object_store_memory": STORE,
            "include_log_monitor": False,
            "dashboard_agent_listen_port": 0,
        }
        self.begin()

    def begin(self) -> dict[str, Any]:
        from ray.cluster_utils import Cluster

        dashboard = {"include_dashboard": True, "dashboard_host": "127.0.0.1", "dashboard_port": self.port}
        self.cluster = Cluster(initialize_head=True, head_node_args={**self.common, **dashboard, "num_cpus": 0})
        self.nodes: dict[str, Any] = {}
        for n in self.cpus:
            self.add(str(n))
        return {"address": f"http://127.0.0.1:{self.port}", "nodes": list(self.nodes)}

    def add(self, cpus: str) -> dict[str, Any]:
        node = self.cluster.add_node(num_cpus=int(cpus), **self.common)
        self.nodes[node.node_id] = node
        return {"added": node.node_id}

    def kill(self, name: str) -> dict[str, Any]:
        node: Any = self.cluster.head_node if name == "head" else self.nodes.pop(name)
        self.cluster.remove_node(node, allow_graceful=False)
        return {"killed": name}

    def end(self) -> None:
        self.cluster.shutdown()


def main() -> None:
    obedient = Obedient([int(word) for word in sys.argv[1:]] or [1, 1])
    try:
        print(json.dumps({"address": f"http://127.0.0.1:{obedient.port}", "nodes": list(obedient.nodes)}), flush=True)
        for line in sys.stdin:
            verb, *words = line.split()
            if verb == "return":
                obedient.end()  # nodes without a head end by themselves, but a minute later
                answer = obedient.begin()
            else:
                answer = obedient.kill(words[0]) if verb == "kill" else obedient.add(words[0])
            print(json.dumps(answer), flush=True)
    finally:
        obedient.end()


if __name__ == "__main__":
    # The path is short, for sockets lie in it.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ["RAY_TMPDIR"] = folder
        main()
