"""Documents to queries: methods, generators, parsing, and the run over a corpus."""
