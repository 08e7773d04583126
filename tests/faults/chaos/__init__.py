"""Killing jobs of every kind at random moments, and looking whether what is shown and kept of them is true."""
