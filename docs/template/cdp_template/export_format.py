"""A format that query sets are written in; write gives the number of queries. See cdp.query_sets.exports."""

from cdp.query_sets.exports import Export


def write(selection, target):
    queries = [example.query for example in selection.examples()]
    target.write_text("\n".join(queries))
    return len(queries)


EXPORT = Export("lines", "Lines", "A query per line.", ".txt", write)
