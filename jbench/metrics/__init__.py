"""Every score of a task."""
