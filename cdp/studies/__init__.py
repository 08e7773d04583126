"""Studies: a plan in, its conditions trained and evaluated, a report out. Sweeps and the test are plans too.

``config`` and ``plan`` say what is to be run, ``run`` runs it (``python -m cdp.workers.study <job folder>``), and
``report`` makes the report. Importing this loads nothing.
"""
