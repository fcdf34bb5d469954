"""Shuts a command in: what it may see, use and outlive."""
