"""Calls language models, whichever provider serves them."""
