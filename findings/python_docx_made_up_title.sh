#!/usr/bin/env bash
# A file without core properties, which are optional, has the title "Word Document".
#
# `Document.core_properties` adds a part with these values where the package has none, and nothing tells them from what the
# file says. Whoever indexes titles gives hundreds of files the same one. cdp/corpus/readers/office.py reads the part itself.
#
# Output seen:
#   python-docx 1.2.0
#     parts of the file: [Content_Types].xml, _rels/.rels, word/document.xml
#     title 'Word Document', last modified by 'python-docx'
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet python-docx==1.2.0

env/bin/python -I - <<'PYTHON'
import sys
import zipfile
from importlib.metadata import version

import docx

OFFICE = "http://schemas.openxmlformats.org"
MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{OFFICE}/package/2006/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{MAIN}"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{OFFICE}/package/2006/relationships"><Relationship Id="rId1" '
    f'Type="{OFFICE}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
    "word/document.xml": f'<w:document xmlns:w="{OFFICE}/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>Bees dance.'
    "</w:t></w:r></w:p></w:body></w:document>",
}
with zipfile.ZipFile("bees.docx", "w") as file:
    for name, content in PARTS.items():
        file.writestr(name, content)

print(f"python-docx {version('python-docx')}")
print(f"  parts of the file: {', '.join(PARTS)}")
said = docx.Document("bees.docx").core_properties
print(f"  title {said.title!r}, last modified by {said.last_modified_by!r}")

sys.exit(0 if said.title == "Word Document" else "The behaviour has changed.")
PYTHON
