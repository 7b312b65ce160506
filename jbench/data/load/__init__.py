"""From a prepared set to batches."""
