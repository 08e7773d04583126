#!/usr/bin/env bash
# `shape.shape_type` raises NotImplementedError for a shape whose outline is left out, which the schema allows.
#
# Geometry is an optional child of `p:spPr`; other programs leave it out of plain text boxes, and PowerPoint shows these.
# A loop that asks each shape for its type loses the deck at the first of them, though `has_text_frame` and the text work.
# cdp/corpus/readers/slides.py reads the shapes by their elements.
#
# Output seen:
#   python-pptx 1.0.2
#     text 'Bees dance.', shape_type: NotImplementedError: Shape instance of unrecognized shape type
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet python-pptx==1.0.2

env/bin/python -I - <<'PYTHON'
import sys
from importlib.metadata import version

import pptx
from pptx.util import Inches

show = pptx.Presentation()
slide = show.slides.add_slide(show.slide_layouts[6])
box = slide.shapes.add_textbox(0, 0, Inches(2), Inches(1))
box.text_frame.text = "Bees dance."
named = box._element.nvSpPr.cNvSpPr
del named.attrib["txBox"]
outline = box._element.spPr
outline.remove(next(child for child in outline if child.tag.endswith("}prstGeom")))
show.save("bees.pptx")

print(f"python-pptx {version('python-pptx')}")
[shape] = pptx.Presentation("bees.pptx").slides[0].shapes
try:
    found = repr(shape.shape_type)
except NotImplementedError as error:
    found = f"{type(error).__name__}: {error}"
print(f"  text {shape.text_frame.text!r}, shape_type: {found}")

sys.exit(0 if found.startswith("NotImplementedError") else "The behaviour has changed.")
PYTHON
