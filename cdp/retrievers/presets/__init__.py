"""The presets, one file each."""
