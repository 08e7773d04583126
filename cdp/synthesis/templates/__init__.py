"""Rules that make queries without a model."""
