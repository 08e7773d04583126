"""Streamlit screens: shell/ for every page; a file per page, a folder where it has tabs."""
