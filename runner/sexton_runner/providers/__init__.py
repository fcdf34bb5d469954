"""Speaks with language models, whoever serves them."""
