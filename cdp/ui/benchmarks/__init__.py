"""The Benchmarks page: collections with judgments, judging by a model or people, and labelling."""
