"""What can go wrong when another server is asked."""


class Unreachable(Exception):
    """Another server did not answer, or its answer cannot be used."""
