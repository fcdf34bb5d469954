"""A runner's claim on one event: renewed, metered, ended once."""
