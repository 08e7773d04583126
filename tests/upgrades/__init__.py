"""Workspaces and catalogues that earlier versions wrote, opened by this one."""
