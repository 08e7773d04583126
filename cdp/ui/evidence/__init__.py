"""Evidence: the published tables, and your own studies with their plans."""
