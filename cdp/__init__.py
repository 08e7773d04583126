"""CDP Studio: complexity-aware training data for dense retrievers."""

__version__ = "0.1.0"
