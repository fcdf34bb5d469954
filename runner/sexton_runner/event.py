"""The event of a lease as a program of the run reads it."""

import msgspec

from sexton_runner.wire import Lease


def event_json(lease: Lease) -> bytes:
    """Give what the command reads on stdin: the event, the body as an object in ``request_json``."""
    event = lease.event
    body = event.request_json
    if isinstance(body, str):
        try:
            body = msgspec.json.decode(body)
        except msgspec.MsgspecError:
            body = {"text": body}
    return msgspec.json.encode(
        {
            "event_id": event.event_id,
            "zombie_id": event.zombie_id,
            "workspace_id": event.workspace_id,
            "actor": event.actor,
            "event_type": event.event_type,
            "created_at": event.created_at,
            "attempt": lease.attempt,
            "request_json": body,
            **({"files": msgspec.to_builtins(event.files)} if event.files else {}),
        }
    )
