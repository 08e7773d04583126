"""Plotly figures: data in, figure out. No Streamlit and no reading of files here.

Every axis says its unit, every series has a name and, beside its colour, a shape or a place of its own.
"""
