"""Stores of objects, where whole contents may be kept in place of the database."""
