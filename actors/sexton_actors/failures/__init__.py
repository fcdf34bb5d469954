"""Failures in groups: what makes two of them alike."""
