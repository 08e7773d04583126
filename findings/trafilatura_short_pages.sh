#!/usr/bin/env bash
# The text of a short page holds its menu too; that of the same page with more sentences does not.
#
# Where the main content has fewer characters than MIN_EXTRACTED_SIZE (250), all text of the page is given instead,
# without a sign in the result. The bound is a setting; `cdp/corpus/readers/files.py` lowers it.
#
# Output seen:
#   trafilatura 2.3.1
#     1 × the sentence: 72 characters, begins 'Home\nShop\nBees\nBees dance in f', menu in it: True
#     8 × the sentence: 468 characters, begins 'Bees\nBees dance in figures of ', menu in it: False
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

PAGE = """<html><head><title>Bees</title></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/shop">Shop</a></li></ul></nav>
<main><h1>Bees</h1><p>{}</p></main>
</body></html>"""
SENTENCE = "Bees dance in figures of eight to tell where flowers are."

print(f"trafilatura {version('trafilatura')}")
menu = {}
for sentences in (1, 8):
    text = trafilatura.extract(PAGE.format(" ".join([SENTENCE] * sentences))) or ""
    menu[sentences] = "Shop" in text
    print(f"  {sentences} × the sentence: {len(text)} characters, begins {text[:30]!r}, menu in it: {menu[sentences]}")

sys.exit(0 if menu == {1: True, 8: False} else "The behaviour has changed.")
PYTHON
