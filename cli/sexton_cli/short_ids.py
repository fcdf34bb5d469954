"""Finds the whole id of what was named by a part of one: its beginning or its end, where one thing fits.

Ids begin with the time at which a thing was made, so those of one minute begin alike; ends are random.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final, NamedTuple

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row
from sexton_cli.exits import FAILED, Fault
from sexton_cli.id_parts import fits, is_id, is_part
from sexton_cli.identity import ambiguous
from sexton_cli.lookups import segment, walk, workspace_path

LOOKED_AT: Final = 1_000


class Kind(NamedTuple):
    """What has ids, and the list in which they are looked for."""

    noun: str
    key: str
    path: str
    """Below the workspace."""
    command: str
    """What lists them for a person."""


EVENT: Final = Kind("event", "event_id", "events", "sexton event list")
APPROVAL: Final = Kind("approval", "gate_id", "approvals", "sexton approvals list --status all")
JOB: Final = Kind("job", "job_id", "jobs", "sexton jobs list")
FAILURE: Final = Kind("failure", "failure_id", "failures", "sexton failures list")
DELIVERY: Final = Kind("delivery", "delivery_id", "webhook-deliveries", "sexton webhook deliveries")
SCHEDULE: Final = Kind("schedule", "schedule_id", "schedules", "sexton schedule list")
GRANT: Final = Kind("grant", "grant_id", "integration-grants", "sexton grants list")
RUNNER: Final = Kind("runner", "id", "", "sexton runner list")
SESSION: Final = Kind("session", "id", "", "sexton session list")
SIGN_IN: Final = Kind("sign-in", "id", "", "sexton sign-ins list")
ERASURE: Final = Kind("erasure", "erasure_id", "erasures", "sexton erasures list")
PROPOSAL: Final = Kind("proposal", "proposal_id", "", "sexton proposals list")
FOLLOW_UP: Final = Kind("follow-up", "follow_up_id", "", "sexton follow-up list")
AGENT_KEY: Final = Kind("agent key", "agent_id", "agent-keys", "sexton agent-key list")


def path_of(caller: Caller, client: Client, kind: Kind, wanted: str) -> str:
    """Where the thing of this id, or of this part of one, stands. Raises Fault."""
    workspace = workspace_path(caller, client)
    return f"{workspace}/{kind.path}/{id_in(client, workspace, kind, wanted)}"


def id_in(client: Client, workspace: str, kind: Kind, wanted: str) -> str:
    """The whole id of a thing of a workspace, as a part of a path. Raises Fault."""
    path = f"{workspace}/{kind.path}"
    kinds = {kind.key: str}
    if kind is APPROVAL:  # What waits is listed apart from what was decided last.
        pending = walk(client, path, {"status": "pending"}, kinds)
        return whole_id(wanted, kind, chain(pending, walk(client, path, {"order": "decided"}, kinds)))
    return whole_id(wanted, kind, walk(client, path, {}, kinds))


def whole_id(wanted: str, kind: Kind, rows: Iterable[Row]) -> str:
    """The id among the first thousand rows that has this part; what can be no part the server judges.

    Raises Fault, which names those that fit where more than one does.

    >>> rows = [{"event_id": "019363b0-0000-7000-8000-00000000aaff"}]
    >>> whole_id("00aaff", EVENT, rows), whole_id("019363b00000", EVENT, rows), whole_id("echo", EVENT, rows)
    ('019363b0-0000-7000-8000-00000000aaff', '019363b0-0000-7000-8000-00000000aaff', 'echo')
    """
    if not is_part(wanted):
        return wanted.lower() if is_id(wanted) else segment(wanted)
    found = sorted(set(_fitting(wanted, kind.key, islice(rows, LOOKED_AT))))
    if len(found) == 1:
        return found[0]
    if not found:
        what = f"there is no {kind.noun} whose id begins or ends with {wanted!r}"
        way_out = f"'{kind.command}' shows them; a part is looked for among the newest {LOOKED_AT:,}."
        raise Fault(what, way_out, status=FAILED)
    raise ambiguous(wanted, found)


def _fitting(wanted: str, key: str, rows: Iterable[Row]) -> Iterator[str]:
    return (str(row[key]) for row in rows if fits(wanted, str(row[key])))
