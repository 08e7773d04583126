"""Studies: the paper's experiment on one's own data. A plan in, its conditions trained and evaluated, a report out.

``config`` and ``plan`` say what is to be run, ``run`` runs it (``python -m cdp.workers.study <job folder>``), and
``report`` makes the report. Importing this loads nothing.
"""
