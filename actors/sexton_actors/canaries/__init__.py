"""A version of an agent that is tried out on a share of its events."""
