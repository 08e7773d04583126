"""Streamlit pieces that the pages share. The pages stay short: read the inputs, call one service, draw.

frame      the page's head, the calm error box, empty states, the next step
navigation every page with its place, and links that carry a selection
state      selections kept across pages and held in the address, so that a link opens the same view
text       a user's text shown as text, and one format per kind of number
forms      widgets made from a configuration's fields
tables     data frames with names for screen readers, paging
jobs       the strip of running jobs and the live view of one job
command    the command line that does the same
charts     figures with their name for screen readers and the data behind them
"""
