"""The workspace as a whole: an overview, the demo, pruning, and checks of the machine."""
