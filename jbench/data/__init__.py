"""From source files to prepared windows: read, check, filter, cut, store, split, load."""
