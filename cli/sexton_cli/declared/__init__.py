"""Workspaces as folders of files: reading them, comparing them with a server, and writing either side."""
