"""Other people's servers of the OpenAI protocol, each in an environment of its own, and this program against them.

    python -m tests.endpoints [--only NAME]… [--out FOLDER]

``counterparts`` says which servers there are, how each is installed and started; ``models`` writes the tiny models that
they load; ``counting`` stands between this program and a server and counts what is asked and paid; ``probes`` asks a
server plainly how it takes requests and refuses them; ``course`` has this program write, judge and evaluate there, and
kills it on the way; ``table`` is what came of it. It is no part of ``make test``: it installs gigabytes.
"""
