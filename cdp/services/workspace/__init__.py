"""The workspace as a whole: an overview, the demo, archives, clearing away, and checks of the machine."""
