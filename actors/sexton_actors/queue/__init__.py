"""The order of one agent's events: one at a time, oldest first."""
