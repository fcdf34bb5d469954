"""Starts the actors of a tree, finds them, restarts them by strategy, and stops them in order."""
