"""Search and embeddings: one engine, and two HTTP servers around it: the search process, ``cdp serve``.

``dashboard`` serves the page "Try a query": on a Unix socket, any corpus and retriever of one workspace, until idle.
``public`` is ``cdp serve`` (docs/SERVING.md): one retriever, one corpus, OpenAI's form. ``web`` is their common part,
on Starlette and uvicorn.

    python -m cdp serve static-minilm --corpus demo
"""
