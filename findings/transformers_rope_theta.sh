#!/usr/bin/env bash
# A decoder that Transformers 5 saved is another model in Transformers 4: the base of its rotary positions is passed over.
#
# Version 5 writes `rope_parameters`, version 4 reads `rope_theta`, and takes the class's default where that is missing,
# without a warning. Weights fit, vectors do not. `cdp/retrievers/spelling.py` writes both.
#
# Output seen:
#   transformers 5.24.0 wrote rope_theta 1000000.0
#   transformers 4.57.6 reads rope_theta 10000.0
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv newer
"${PYTHON:-python3}" -m venv older
newer/bin/python -m pip install --quiet transformers==5.24.0
older/bin/python -m pip install --quiet transformers==4.57.6

newer/bin/python -I - <<'PYTHON' 2>/dev/null
import transformers

config = transformers.Qwen3Config(rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0})
config.save_pretrained("saved")
print(f"transformers {transformers.__version__} wrote rope_theta {config.rope_parameters['rope_theta']}")
PYTHON

older/bin/python -I - <<'PYTHON'
import sys

import transformers

read = transformers.AutoConfig.from_pretrained("saved").rope_theta
print(f"transformers {transformers.__version__} reads rope_theta {read}")
sys.exit(0 if read == 10_000.0 else "The behaviour has changed.")
PYTHON
