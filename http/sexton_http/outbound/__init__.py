"""Calls to other people's servers, bounded in time and size."""
