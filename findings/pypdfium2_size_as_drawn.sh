#!/usr/bin/env bash
# The size of a font is that before the text's matrix: a line drawn at 20 points may say 1, one of 12 points 24. And the
# text of a page holds what lies outside of its crop box, which no viewer shows.
#
# Programs that scale the page instead of the font write such files. The matrix is asked for apart (FPDFText_GetMatrix),
# and each character's box, in `cdp/corpus/readers/pdf_page.py`.
#
# Output seen:
#   pypdfium2 5.15.2, pdfium's text of the page: ['Printer mark', 'Harbour rules', 'A line of text']
#     'Harbour rules' is drawn at 20 points: font size 1.0, matrix 20.0
#     'A line of text' is drawn at 12 points: font size 24.0, matrix 0.5
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet pypdfium2==5.15.2 reportlab==5.1.0

env/bin/python -I - <<'PYTHON'
import sys
from importlib.metadata import version

import pypdfium2
from pypdfium2 import raw
from reportlab.pdfgen.canvas import Canvas

canvas = Canvas("page.pdf", pagesize=(595, 842), cropBox=(50, 50, 545, 790))
canvas.drawString(60, 815, "Printer mark")
for y, scale, size, text in ((700, 20, 1, "Harbour rules"), (600, 0.5, 24, "A line of text")):
    canvas.saveState()
    canvas.translate(60, y)
    canvas.scale(scale, scale)
    canvas.setFont("Helvetica", size)
    canvas.drawString(0, 0, text)
    canvas.restoreState()
canvas.save()

page = pypdfium2.PdfDocument("page.pdf")[0].get_textpage()
lines = page.get_text_range().split("\r\n")
print(f"pypdfium2 {version('pypdfium2')}, pdfium's text of the page: {lines}")
at, sizes, matrix = 0, [], raw.FS_MATRIX()
for line in lines:
    sizes.append(raw.FPDFText_GetFontSize(page.raw, at))
    raw.FPDFText_GetMatrix(page.raw, at, matrix)
    if line != "Printer mark":
        drawn = round(sizes[-1] * matrix.d)
        print(f"  {line!r} is drawn at {drawn} points: font size {sizes[-1]}, matrix {matrix.d}")
    at += len(line) + 2

sys.exit(0 if "Printer mark" in lines and sizes[1:] == [1.0, 24.0] else "The behaviour has changed.")
PYTHON
