"""A format of documents: the rows of a file, as dicts with an id, a title and a text. See cdp.corpus.readers."""

from cdp.corpus.readers import Row, RowFormat
from cdp.corpus.sources import numbered_lines, open_text


def rows(source, options):
    with open_text(source, options.encoding) as text:
        for number, line in numbered_lines(text):
            yield Row(number, dict(zip(("_id", "title", "text"), line.rstrip().split("|"), strict=False)))


FORMAT = RowFormat("bars", "Bars", "id, title and text between bars", (".bars",), rows)
