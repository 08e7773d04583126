"""The paper's experiment through the product's own studies, and the document that says what came of it.

``python -m reproduction run`` prepares a workspace, runs the studies of ``stages`` one after the other, and writes the
document; a second call goes on where the first was stopped. ``small`` is the form for tests, ``document`` writes the
document from what is there, ``full`` says what the paper's own size would take, without starting anything.
"""
