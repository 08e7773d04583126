"""The Benchmarks page."""
