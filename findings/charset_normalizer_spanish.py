#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# dependencies = ["charset-normalizer==3.5.2"]
# ///
"""A short Spanish or French text in Latin-1 is taken for cp1250, and its letters are changed in silence.

Both code pages have a letter at these bytes, so decoding does not fail: "niño" becomes "nińo". `cdp/corpus/sources.py`
therefore chooses the code page of a text with few accents by the language of its words.
"""

import sys
from importlib.metadata import version

from charset_normalizer import from_bytes

TEXTS = {
    "El niño comió piñas.": "El nińo comió pińas.",
    "Où est la bibliothèque ? À côté de la mairie.": "Oů est la bibliothčque ? Ŕ côté de la mairie.",
}

print(f"charset-normalizer {version('charset-normalizer')}")
found = {}
for text in TEXTS:
    best = from_bytes(text.encode("latin-1")).best()
    found[text] = str(best)
    print(f"  written  {text}\n  read     {best} ({best and best.encoding})")

sys.exit(0 if found == TEXTS else "The behaviour has changed.")
