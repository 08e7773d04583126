#!/usr/bin/env bash
# Dataset.to_csv writes a list of two texts without a comma, and Python reads it as a list of one.
#
# Lists become NumPy arrays on the way to pandas, and their cells are what `str` gives of an array: of one text a Python list,
# of more texts ['a' 'b'], which `ast.literal_eval` joins. cdp/corpus/checks.py refuses such a cell by its row.
#
# Output seen:
#   datasets 5.2.0, pandas 3.1.1, numpy 2.4.6
#     ['Bees dance.'] is written as ['Bees dance.'], read as ['Bees dance.']
#     ['Bees dance.', 'Cats sleep.'] is written as ['Bees dance.' 'Cats sleep.'], read as ['Bees dance.Cats sleep.']
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet datasets==5.2.0 pandas==3.1.1 numpy==2.4.6

HF_HOME="$folder/hf" env/bin/python -I - <<'PYTHON'
import ast
import csv
import sys
from importlib.metadata import version

import datasets

LISTS = [["Bees dance."], ["Bees dance.", "Cats sleep."]]

datasets.disable_progress_bars()
datasets.Dataset.from_dict({"positives": LISTS}).to_csv("lists.csv")
with open("lists.csv", newline="", encoding="utf-8") as file:
    cells = [row["positives"] for row in csv.DictReader(file)]

print(", ".join(f"{package} {version(package)}" for package in ("datasets", "pandas", "numpy")))
read = list(map(ast.literal_eval, cells))
for texts, cell, again in zip(LISTS, cells, read, strict=True):
    print(f"  {texts} is written as {cell}, read as {again}")

sys.exit(0 if read == [LISTS[0], ["".join(LISTS[1])]] else "The behaviour has changed.")
PYTHON
