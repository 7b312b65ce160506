"""Embeddings of images, texts, sounds and films."""
