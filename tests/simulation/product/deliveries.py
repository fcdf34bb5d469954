"""Deliveries of webhooks: what each says, and which come again without an id; a name decides, not chance."""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from tests.simulation.product.customers import about
from tests.worlds.samples import SECRET

USUAL: Final = "completed"
STOPPED: Final = "requested"
"""What an agent of ``busy_agents`` asks a person about before anything runs."""
FORBIDDEN: Final = "in_progress"
"""What the same agent refuses to run for."""
ACTIONS: Final = (*(USUAL,) * 5, STOPPED, STOPPED, FORBIDDEN)
AGAIN_EACH: Final = 3
"""One delivery in this number comes again without its id, as by a sender that keeps none."""
ID_HEADER: Final = "x-github-delivery"


def action_of(delivery: str, *, varied: bool) -> str:
    """Which action a delivery tells of; not ``varied``: the same one always.

    >>> [action_of(f"sender-0-{number}", varied=True) for number in range(4)]
    ['in_progress', 'requested', 'completed', 'in_progress']
    """
    return ACTIONS[zlib.crc32(delivery.encode()) // 3 % len(ACTIONS)] if varied else USUAL


def comes_again(delivery: str) -> bool:
    """Whether it does, where deliveries are varied."""
    return zlib.crc32(delivery.encode()) // 5 % AGAIN_EACH == 0


def body_of(delivery: str, *, varied: bool) -> bytes:
    said = {"action": action_of(delivery, varied=varied), "workflow_run": {"delivery": delivery}}
    return orjson.dumps({**said, **about(delivery)})


def headers_of(delivery: str, body: bytes) -> dict[str, str]:
    """Those that the first sending has, signed."""
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    return {
        "x-github-event": "workflow_run",
        ID_HEADER: delivery,
        "x-hub-signature-256": f"sha256={signature}",
        "content-type": "application/json",
    }


def delivery_in(request: Mapping[str, Any]) -> str | None:
    """The name of the delivery that an event was made of; None: of none, or it is erased.

    >>> delivery_in({"raw": {"workflow_run": {"delivery": "sender-0-1"}}}), delivery_in({"message": "Look."})
    ('sender-0-1', None)
    """
    run = request.get("raw", {}).get("workflow_run", {})
    name: str | None = run.get("delivery")
    return name
