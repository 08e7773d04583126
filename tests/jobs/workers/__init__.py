"""Small workers that tests start as real processes: ``python -m tests.jobs.workers.<name> <job folder>``."""
