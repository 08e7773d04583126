#!/usr/bin/env bash
# LiteLLM's proxy turns an answer without token counts into one with zero tokens: its costs add up to nothing.
#
# Its response object fills in counts of 0 where the server behind it sent none. `docs/how-to/endpoint.md` says so.
#
# Output seen:
#   litellm 1.106.12
#     upstream sent no usage; the proxy says {'completion_tokens': 0, 'prompt_tokens': 0, 'total_tokens': 0}
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet 'litellm[proxy]==1.106.12' fastapi==0.165.0

env/bin/python -I - <<'PYTHON'
import http.server
import json
import os
import secrets
import subprocess
import sys
import threading
import time
import urllib.request
from importlib.metadata import version
from pathlib import Path

MESSAGE = {"role": "assistant", "content": "Where do bees live?"}
CHOICE = {"index": 0, "finish_reason": "stop", "message": MESSAGE}
ANSWER = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [CHOICE]}
PORT = 21_873
KEY = f"sk-{secrets.token_hex(24)}"


class Upstream(http.server.BaseHTTPRequestHandler):
    """The server behind the proxy: its answers have no "usage"."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def get(path, body=None):
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", body and json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request, timeout=120))


upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
threading.Thread(target=upstream.serve_forever, daemon=True).start()
parameters = {"model": "openai/m", "api_base": f"http://127.0.0.1:{upstream.server_port}/v1", "api_key": "none"}
Path("config.yaml").write_text(json.dumps({"model_list": [{"model_name": "m", "litellm_params": parameters}]}))
proxy = subprocess.Popen(
    [Path(sys.executable).with_name("litellm"), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(PORT)],
    env={**os.environ, "LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
)
try:
    for _ in range(600):
        try:
            get("/health/liveliness")
            break
        except OSError:
            time.sleep(0.2)
    answer = get("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "Ask about bees."}]})
finally:
    proxy.kill()
usage = answer.get("usage") or {}
print(f"litellm {version('litellm')}")
print(f"  upstream sent no usage; the proxy says {usage}")

sys.exit(0 if usage.get("prompt_tokens") == usage.get("completion_tokens") == 0 else "The behaviour has changed.")
PYTHON
