"""What several readers share: file formats and words for what they hold."""
