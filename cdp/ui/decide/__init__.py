"""The Decide page: the answer, and the published rule."""
