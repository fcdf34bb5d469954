"""The version that an agent is pinned to: pure decisions on that part of its record."""

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sexton_actors.refusal import Refusal
from sexton_storage.documents import Json
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.zombies import Zombie

PINNED: Final = "UZ-HARNESS-004"


class Pin(msgspec.Struct, frozen=True):
    """Whatever files the agent is given, it works by this version."""

    version: int
    """The number of the active version."""
    at: int
    by: str
    reason: str = ""
    held_version: int | None = None
    """The newest files that it was given since: a compiled version that waits; None: it was given none."""


def pin_of(kept: Json) -> Pin | None:
    """The pin of an agent's record; None: it is pinned to none."""
    return msgspec.convert(kept, Pin) if kept else None


def kept_as(pin: Pin | None) -> dict[str, Any]:
    """As it is kept in the agent's record."""
    plain: dict[str, Any] = {} if pin is None else msgspec.to_builtins(pin)
    return plain


def pinned(known: Pin | None, wanted: Pin, *, active: int, on_trial: int | None) -> Pin | Refusal:
    """Pin an agent to the version that is active; what is pinned to it already stays as it is.

    >>> pin = Pin(3, at=1, by="user:ada")
    >>> pinned(None, pin, active=3, on_trial=None) == pinned(pin, Pin(3, 2, "api:b"), active=3, on_trial=None)
    True
    >>> pinned(None, pin, active=4, on_trial=None).code, pinned(None, pin, active=3, on_trial=4).code
    ('UZ-HARNESS-004', 'UZ-REQ-009')
    """
    if on_trial is not None:
        detail = f"Version {on_trial} is on trial; promote or withdraw it first."
        return Refusal("UZ-REQ-009", detail, {"current_state": "on_trial"})
    if wanted.version != active:
        detail = f"Version {active} is the active one, not {wanted.version}; make that the active one first."
        return Refusal(PINNED, detail, {"active_version": active})
    return wanted if known is None else known


def may_become_active(known: Pin | None, version: int) -> Refusal | None:
    """None unless the agent is pinned to another version.

    >>> may_become_active(Pin(3, 1, "user:ada"), 3) is may_become_active(None, 4) is None
    True
    >>> may_become_active(Pin(3, 1, "user:ada"), 4).detail
    'The agent is pinned to version 3; let it go first.'
    """
    if known is None or known.version == version:
        return None
    detail = f"The agent is pinned to version {known.version}; let it go first."
    return Refusal(PINNED, detail, {"pinned_version": known.version})


def holding(pin: Pin, version: int) -> Pin:
    """The pin, with the version that the newest files have become; the pinned one itself waits for nothing.

    >>> holding(Pin(3, 1, "user:ada"), 5).held_version, holding(Pin(3, 1, "user:ada", "", 5), 3).held_version
    (5, None)
    """
    return replace(pin, held_version=None if version == pin.version else version)


def changed_frame(zombie: Zombie, pin: Pin | None, by: str, now: int) -> NewFrame:
    """What the agent's stream says of a pin that was set, or taken away, or holds other files."""
    data = {
        "agent_version": zombie.config_revision,
        "pinned": pin is not None,
        "held_version": None if pin is None else pin.held_version,
        "by": by,
        "reason": "" if pin is None else pin.reason,
    }
    return NewFrame(zombie.id, None, FrameKind.PIN_CHANGED, now, data)
