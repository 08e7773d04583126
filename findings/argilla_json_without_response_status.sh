#!/usr/bin/env bash
# An exported record does not say which answers were discarded or are drafts; read again, all are alike.
#
# `Record.to_dict`, by which `dataset.records.to_json` writes, keeps an answer's value and user and leaves its status out.
# `to_datasets` writes the status in a column of its own. cdp/query_sets/shapes.py takes submitted answers alone where a file
# says which they are; of JSON it cannot know. (argilla imports requests, which it does not ask for.)
#
# Output seen:
#   argilla 2.8.0
#     answers: yes (submitted), no (discarded), no (draft)
#     exported: value, user_id; value, user_id; value, user_id
#     read again: yes (None), no (None), no (None)
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet argilla==2.8.0 requests==2.32.5

env/bin/python -I - <<'PYTHON'
import json
import sys
from importlib.metadata import version
from uuid import UUID

import argilla as rg

GIVEN = [("yes", "submitted"), ("no", "discarded"), ("no", "draft")]


def shown(record):
    return ", ".join(f"{one.value} ({one.status and one.status.value})" for one in record.responses)


answers = [rg.Response("relevant", value, UUID(int=n), status=status) for n, (value, status) in enumerate(GIVEN)]
record = rg.Record(id="1", fields={"query": "who dances?", "text": "Bees dance."}, responses=answers)
exported = json.loads(json.dumps(record.to_dict()))
fields = [list(answer) for answer in exported["responses"]["relevant"]]

print(f"argilla {version('argilla')}")
print(f"  answers: {shown(record)}")
print(f"  exported: {'; '.join(', '.join(names) for names in fields)}")
print(f"  read again: {shown(rg.Record.from_dict(exported))}")

sys.exit(0 if not any("status" in names for names in fields) else "The behaviour has changed.")
PYTHON
