#!/usr/bin/env bash
# Words in the middle of a sentence are cut out, without a sign in the result, where they stand in <time>, <button> or
# <output>; so is the caption of a figure that shows code, with the code.
#
# The library removes elements by their names, for what they mean on most pages, with all that stands in them;
# `favor_recall` does not change it. `cdp/corpus/readers/markup.py` therefore walks the page itself, and counts its words.
#
# Output seen:
#   trafilatura 2.3.1
#     The council met on and adjourned.
#     Press to keep the list of boats.
#     'The tower in 1890' in it: False, 'lamp.light()' in it: False
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet trafilatura==2.3.1 lxml_html_clean==0.4.6

env/bin/python -I - <<'PYTHON'
import sys
from importlib.metadata import version

import trafilatura

PAGE = """<html><head><title>Harbour</title></head><body><main><h1>Harbour</h1><p>{}</p>
<p>The council met on <time datetime="2024-05-03">3 May</time> and adjourned.</p>
<p>Press <button>Save</button> to keep the list of <output>12</output> boats.</p>
<figure><pre>lamp.light()</pre><figcaption>The tower in 1890</figcaption></figure>
</main></body></html>"""
SENTENCE = "The office keeps a small archive of tide tables, fares and letters from passengers. "

text = trafilatura.extract(PAGE.format(8 * SENTENCE), favor_recall=True) or ""
print(f"trafilatura {version('trafilatura')}")
for line in text.split("\n"):
    if line.startswith(("The council", "Press")):
        print(f"  {line}")
kept = [words in text for words in ("3 May", "Save", "12", "The tower in 1890", "lamp.light()")]
print(f"  'The tower in 1890' in it: {kept[3]}, 'lamp.light()' in it: {kept[4]}")

sys.exit("The behaviour has changed." if any(kept) else 0)
PYTHON
