"""Who may do what, and what a visitor may name: modes, their enforcement, paths and endpoints."""
