"""A synthesis method: a prompt with {document} and {M} in it. Facts and options: cdp.synthesis.methods.Method."""

from cdp.synthesis.methods import Method

METHOD = Method("headline", "Headline", "Headlines of the document.", "Headlines, {M} of them:\n{document}")
