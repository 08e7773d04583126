"""What to do for a task: its queries in content words, the published evidence, and a decision with its price."""
