"""Every stage over every corpus of ``../shared/data``, by the command line alone, in one workspace that begins empty.

    python -m tests.gauntlet [--only NAME]… [--documents-in-a-hundred N] [--out FOLDER]

``corpora`` says what there is, ``stages`` takes one corpus from its files to exports as a user would type it, ``table``
writes down what came of it. ``test_short_form`` runs two documents in a hundred of every language in ``make test``.
"""
