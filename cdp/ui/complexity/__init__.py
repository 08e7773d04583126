"""The Complexity page."""
