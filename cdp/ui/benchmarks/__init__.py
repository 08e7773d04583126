"""The Benchmarks page: collections with judgments, judging by a model, and labelling by people."""
