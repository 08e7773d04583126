"""The Quality and diversity page."""
