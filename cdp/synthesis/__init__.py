"""Documents to queries: methods, generators, parsing, and the run over a corpus."""

from __future__ import annotations

from cdp.synthesis.generate import Generation, generate_for
from cdp.synthesis.generators import GENERATORS, Generator, make_generator
from cdp.synthesis.methods import METHODS, Method, get_method

__all__ = ["GENERATORS", "METHODS", "Generation", "Generator", "Method", "generate_for", "get_method", "make_generator"]
