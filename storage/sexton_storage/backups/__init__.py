"""Backups of a database and of the keys beside it: made while it serves, verified, pruned and restored."""
