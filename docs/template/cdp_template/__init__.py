"""A plug-in for CDP Studio: one module for each kind of thing that can be added."""
