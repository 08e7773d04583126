"""CDP Studio: complexity-aware training data for dense retrievers.

"The paper" in this package is Feng, Nishida, Sakai and Matsumoto, *Complexity-Aware Training for OOD Generalization in
Dense Retrieval*, https://arxiv.org/abs/2602.09448. Its tables, equations and sections are cited by the labels of its
LaTeX source (``tab:cw_threshold``, ``eq:ri``, ``sec:appendix_qd``), which stay the same where printed numbers change.
``docs/METHODS.md`` lists every formula with its source, our reading, and where it is computed.
"""

__version__ = "0.1.0"
