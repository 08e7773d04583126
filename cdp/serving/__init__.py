"""Search and embeddings: one engine, and one HTTP program around it in two kinds of instance.

``dashboard`` is the instance that the page "Try a query" and ``cdp search`` ask: on a Unix socket, any corpus and
retriever of one workspace, ends when idle. ``public`` is ``cdp serve``: one retriever, one corpus, OpenAI's form.

    python -m cdp serve static-minilm --corpus demo

``web`` has what both share: access checks, limits, the form of errors. The server is uvicorn, the routes are
Starlette's. docs/SERVING.md is the manual of ``cdp serve``.
"""
