"""The Decide page, at the address of the Complexity page that it took the place of."""
