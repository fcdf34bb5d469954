"""Brings ready agents and waiting runners together."""
