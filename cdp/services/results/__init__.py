"""Measured results: what they are of, compared, averaged, explained, and written as text and files."""
