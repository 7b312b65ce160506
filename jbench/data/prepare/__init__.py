"""From recordings to a prepared set."""
