"""Bulk jobs: what is done to many events at once."""
