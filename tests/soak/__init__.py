"""The dashboard in use for hours, and by many at once: what make soak runs beside fuzzing and kills."""
