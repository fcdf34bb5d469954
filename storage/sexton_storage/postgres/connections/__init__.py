"""Connections to PostgreSQL: opened, bounded, and given back."""
