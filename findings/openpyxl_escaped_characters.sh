#!/usr/bin/env bash
# A carriage return in a cell is read as the characters "_x000D_", and "x005F_" is cut out of any text.
#
# The format writes characters that XML cannot hold as "_xHHHH_", and an underscore that would look so as "_x005F_". Reading,
# openpyxl removes "x005F_" wherever it stands and decodes nothing else. cdp/corpus/readers/sheets.py decodes what is left.
#
# Output seen:
#   openpyxl 3.1.5
#     the cell holds 'Quay\r\nHouse', the value is 'Quay_x000D_\nHouse'
#     the cell holds 'box005F_7', the value is 'bo7'
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet openpyxl==3.1.5 XlsxWriter==3.2.9

env/bin/python -I - <<'PYTHON'
import sys
from importlib.metadata import version

import openpyxl
import xlsxwriter

HELD = ["Quay\r\nHouse", "box005F_7"]
with xlsxwriter.Workbook("book.xlsx") as book:  # stores them as Excel does
    book.add_worksheet().write_column(0, 0, HELD)

print(f"openpyxl {version('openpyxl')}")
values = [row[0] for row in openpyxl.load_workbook("book.xlsx").active.values]
for held, value in zip(HELD, values, strict=True):
    print(f"  the cell holds {held!r}, the value is {value!r}")

sys.exit(0 if values == ["Quay_x000D_\nHouse", "bo7"] else "The behaviour has changed.")
PYTHON
