"""Gives the members of a workspace an id each under which their uploads are kept."""

from uuid import UUID, uuid5


def sender_of(workspace_id: UUID, by: str) -> UUID:
    """Give the id that a member's uploads are kept under, where those of a run have its lease's.

    >>> sender_of(UUID(int=1), "user:1") == sender_of(UUID(int=1), "user:2")
    False
    """
    return uuid5(workspace_id, by)
