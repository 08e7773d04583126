"""``cdp serve``: search and embeddings over HTTP, in the form of OpenAI's API, by one retriever that stays in memory.

    python -m cdp serve static-minilm --corpus demo

``door`` decides who comes in and how much they may bring, ``app`` reads requests and writes answers, ``batching`` has
the texts of many requests read together by one thread, and ``served`` is that retriever with its index. The server is
uvicorn, the routes are Starlette's, the schema is pydantic's. Importing this loads no torch. docs/SERVING.md is its
manual.
"""
