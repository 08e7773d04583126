"""Other programs with models, files and runs that were made here: ``make interop``."""
