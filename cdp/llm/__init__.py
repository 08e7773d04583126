"""Asking a language model behind an endpoint: address and key, client, prices, budget, answer cache.

Used by synthesis; for judging and for retrievers behind an API too. Knows no document and no query.
"""
