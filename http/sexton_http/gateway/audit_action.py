"""What the audit log says of a route."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Audit:
    """``action``: a thing and what is done to it. ``facts``: the fields of the body that are told with it.

    A fact is never a secret, nor a text without bound.
    """

    action: str
    facts: tuple[str, ...] = ()
    target: str = ""
    """The field of the body that names the thing; empty: the path does, or the row that changes."""
    of_platform: bool = False
    """It is told in the log of the platform, and not in a tenant's."""
