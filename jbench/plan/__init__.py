"""From what the user typed to a list of cells."""
