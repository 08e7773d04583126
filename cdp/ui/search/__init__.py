"""Trying a query: the choice of what is searched and by whom, and what was retrieved side by side."""
