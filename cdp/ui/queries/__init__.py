"""The Queries page: previews, query sets, writing for a whole corpus."""
