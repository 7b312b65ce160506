"""The command line: its arguments, its lists, its environment."""
