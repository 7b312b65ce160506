"""Many cells at once: a list of commands, and the engines that run them."""
