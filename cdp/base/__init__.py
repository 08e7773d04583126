"""What every room uses and what knows of no room: errors, settings, records, workspace, locks, names, statistics."""
