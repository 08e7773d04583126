"""What a click or a command does: one function per user action. Pages and commands call these and nothing behind them.

Every function takes the workspace first, checks its input (CdpError says what is wrong and what to do next) and either
returns data at once or submits a job and returns its id. Importing this package loads no model library.
"""
