"""A server that speaks as much of the Hugging Face hub's API as an upload needs, on this machine.

Repositories hold files and whether they are private. Who may write is known by a token; a large file goes by git LFS,
and what arrives is checked against the hash that was announced, as the hub does.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import yaml

from tests.benchmarks import hub_server

TOKEN = "hf_writer"


def metadata_faults(card: str) -> list[str]:
    """What the hub's check of a model card's metadata objects to, as far as its schema is published."""
    front = yaml.safe_load(card.split("---\n", 2)[1]) if card.startswith("---\n") else {}
    texts = ("license", "base_model_relation", "library_name", "pipeline_tag")
    faults = [f"{name} must be a string" for name in texts if not isinstance(front.get(name, ""), str)]
    for name in ("tags", "datasets", "language", "base_model"):
        value = front.get(name, [])
        if not isinstance(value, str) and not all(isinstance(item, str) for item in value):
            faults.append(f"{name} must be a list of strings")
    for model in front.get("model-index", []):
        faults += [] if isinstance(model.get("name"), str) else ["model-index[0].name is required"]
        for result in model["results"]:
            for part, names in (("task", ("type",)), ("dataset", ("type", "name"))):
                faults += [f"{part}.{n} is required" for n in names if not isinstance(result.get(part, {}).get(n), str)]
            for metric in result["metrics"]:
                if not isinstance(metric.get("type"), str) or not isinstance(metric.get("value"), int | float):
                    faults.append("metrics[0] needs type and value")
    return faults


@dataclass
class Repository:
    private: bool
    files: dict[str, bytes] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)


@dataclass
class UploadHub:
    """What is on it, and what was asked of it. ``broken`` maps the beginning of a path to a status it answers."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    address: str = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: UploadHub

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path, hub = self.path.split("?")[0], self.hub
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        hub.asked.append((self.command, path))
        for beginning, status in hub.broken.items():
            if path.startswith(beginning):
                return self._send(status, {"error": "out of order"})
        words = path.strip("/").split("/")
        if words[0] == "large":
            if hashlib.sha256(data).hexdigest() != words[1]:
                return self._send(422, {"error": "not the content that was announced"})
            hub.large[words[1]] = data
            return self._send(200, {})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._send(401, {"error": "Invalid username or password."})
        if path == "/api/validate-yaml":
            faults = metadata_faults(json.loads(data)["content"])
            return self._send(400 if faults else 200, {"errors": [{"message": f} for f in faults], "warnings": []})
        if path == "/api/repos/create":
            asked = json.loads(data)
            name = f"{asked['organization']}/{asked['name']}"
            hub.repositories[name] = Repository(asked.get("visibility") == "private" or bool(asked.get("private")))
            return self._send(200, {"url": f"{hub.address}/{name}"})
        name = "/".join(words[:2] if words[0] != "api" else words[2:4]).removesuffix(".git")
        repository = hub.repositories.get(name)
        if repository is None:
            return self._send(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        if words[-1] == "batch":
            listed = json.loads(data)["objects"]
            actions = [
                {**o, "actions": {"upload": {"href": f"{hub.address}/large/{o['oid']}", "header": {}}}} for o in listed
            ]
            return self._send(200, {"transfer": "basic", "objects": actions})
        if "preupload" in words:
            modes = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if file["path"].endswith((".safetensors", ".onnx")) else "regular",
                    "shouldIgnore": False,
                }
                for file in json.loads(data)["files"]
            ]
            return self._send(200, {"files": modes})
        if "commit" in words:
            return self._send(200, self._commit(repository, name, data))
        return self._send(200, {"id": name, "private": repository.private, "sha": "0" * 40, "siblings": [], "tags": []})

    def _commit(self, repository: Repository, name: str, data: bytes) -> dict[str, Any]:
        for line in data.splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "header":
                repository.messages.append(value["summary"])
            elif item["key"] == "file":
                repository.files[value["path"]] = base64.b64decode(value["content"])
            else:
                assert item["key"] == "lfsFile", item
                repository.files[value["path"]] = self.hub.large[value["oid"]]
        commit = hashlib.sha1(data).hexdigest()
        return {"success": True, "commitOid": commit, "commitUrl": f"{self.hub.address}/{name}/commit/{commit}"}

    def _send(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(hub_server.Server):
    """``with Server(hub):`` serves it; ``hub.address`` is where."""

    handler = _Handler
