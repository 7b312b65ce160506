"""What the data of a task hold, as text and as a page."""
