"""The Evidence page: the published results."""
