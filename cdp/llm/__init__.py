"""Asking a language model behind an endpoint: address and key, client, prices, budget, answer cache.

Used by synthesis, judging and retrievers behind an API. Knows no document and no query.
"""
