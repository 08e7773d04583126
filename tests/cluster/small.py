"""A Ray cluster on this machine: ``python -m tests.cluster.small``, a head without CPUs and two nodes with one each, or
as many nodes as numbers are named, each with so many CPUs.

It prints its address and then obeys, a line at a time: ``kill <node id>``, ``kill head``. At the end of its input it
takes everything down: whoever starts it may die in any way.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
STORE = 80 * 2**20


def main() -> None:
    from ray.cluster_utils import Cluster

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Where another cluster runs on this machine, its agents have Ray's own port, and no job could be submitted to this
    # one; and Ray's own folder names the newest cluster, to which the Ray workers of our jobs would go.
    common: dict[str, Any] = {
        "object_store_memory": STORE,
        "include_log_monitor": False,
        "dashboard_agent_listen_port": 0,
    }
    head = {**common, "num_cpus": 0, "include_dashboard": True, "dashboard_host": "127.0.0.1", "dashboard_port": port}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        cpus = [int(word) for word in sys.argv[1:]] or [1, 1]
        nodes = {node.node_id: node for node in [cluster.add_node(num_cpus=n, **common) for n in cpus]}
        print(json.dumps({"address": f"http://127.0.0.1:{port}", "nodes": list(nodes)}), flush=True)
        for line in sys.stdin:
            name = line.split()[1]
            cluster.remove_node(cluster.head_node if name == "head" else nodes[name], allow_graceful=False)
            print(json.dumps({"killed": name}), flush=True)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    # The path is short, for sockets lie in it.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ["RAY_TMPDIR"] = folder
        main()
