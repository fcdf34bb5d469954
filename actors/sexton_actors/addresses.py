"""What an actor's address says of it."""

from uuid import UUID

from sexton_engine import Context


def uuid_key(context: Context) -> UUID:
    """The id of the record that an actor of a family holds; raises TypeError for an address that is none."""
    key = context.key
    if not isinstance(key, UUID):
        raise TypeError(f"{context.kind} is keyed by the id of its record, not by {key!r}")
    return key
