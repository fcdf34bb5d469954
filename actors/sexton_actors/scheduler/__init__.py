"""Wakes agents by the clock: each firing of a schedule once, whoever is up to see it."""
