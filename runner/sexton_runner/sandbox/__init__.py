"""Sandboxes a command: what it may see and use, and when it must end."""
