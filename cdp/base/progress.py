"""The type of what long work calls between two batches, to say how far it is."""

from collections.abc import Callable

# Called with the phase, what is done and the total (0 if unknown); may raise to end the work.
Progress = Callable[[str, int, int], None]
# The same within one phase: called with what is done and the total.
PhaseProgress = Callable[[int, int], None]


def silent(*_: object) -> None:
    """Say nothing: the default of both."""
