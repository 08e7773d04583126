#!/usr/bin/env bash
# `paragraph.text` leaves out words that Word shows: tracked insertions, and content controls within a line.
#
# Both are elements around the runs (`w:ins`, `w:sdt`), and python-docx reads runs and hyperlinks that are children of the
# paragraph itself. The text is shorter, with no sign of it.
#
# Output seen:
#   python-docx 1.2.0
#     Word shows 'Bees dance in figures of eight.', the text is 'Bees dance '
#     Word shows 'Bees leave at dawn.', the text is 'Bees leave '
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet python-docx==1.2.0

env/bin/python -I - <<'PYTHON'
import sys
from importlib.metadata import version

import docx
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

W = nsdecls("w")
INSERTED = (
    f'<w:ins {W} w:id="1" w:author="a" w:date="2026-01-01T00:00:00Z"><w:r><w:t>in figures of eight.</w:t></w:r></w:ins>'
)
CONTROL = f"<w:sdt {W}><w:sdtContent><w:r><w:t>at dawn.</w:t></w:r></w:sdtContent></w:sdt>"

document = docx.Document()
for words, element in (("Bees dance ", INSERTED), ("Bees leave ", CONTROL)):
    document.add_paragraph(words)._p.append(parse_xml(element))
document.save("changes.docx")

print(f"python-docx {version('python-docx')}")
texts = [paragraph.text for paragraph in docx.Document("changes.docx").paragraphs]
for shown, text in zip(("Bees dance in figures of eight.", "Bees leave at dawn."), texts, strict=True):
    print(f"  Word shows {shown!r}, the text is {text!r}")

sys.exit(0 if texts == ["Bees dance ", "Bees leave "] else "The behaviour has changed.")
PYTHON
