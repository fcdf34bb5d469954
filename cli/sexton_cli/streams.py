"""Follows an agent's activity, across restarts of the server too."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson

from sexton_cli.client import Client
from sexton_cli.exchange import SentEvent
from sexton_cli.exits import UNAVAILABLE, Fault
from sexton_cli.output import moment

AGAIN_S: Final = 2.0
"""Between two tries, until the server says otherwise."""
MAX_AGAIN_S: Final = 30.0
PATIENCE_S: Final = 300.0
"""How long a server may be away before the command gives up."""
OPENED: Final = "opened"
"""The kind of what is not from the server: the stream stands, and from here on nothing is missed."""
ALWAYS: Final = frozenset({"kind", "event_id", "zombie_id", "at_ms"})


class Frame(NamedTuple):
    """One line of the stream; ``data`` bears kind, event_id, zombie_id and at_ms beside its own."""

    id: str
    kind: str
    data: Mapping[str, Any]


class Follower:
    """One agent's stream. Nothing is missed and nothing comes twice: it resumes by the last id."""

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        last_id: str | None = None,
        note: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._path = path
        self._last_id = last_id
        self._note = note
        self._sleep = sleep
        self._now = now
        self._again_s = AGAIN_S
        self._opened = False

    def __repr__(self) -> str:
        return f"<Follower of {self._path} after {self._last_id}>"

    def __iter__(self) -> Iterator[Frame]:
        """Frames for ever. Raises Fault when the first try fails, it is refused, or patience ends."""
        heard_at = self._now()
        while True:
            try:
                for frame in self._read():
                    heard_at = self._now()
                    yield frame
            except Fault as fault:
                # A server that stops, or that is away, comes back; who may not look never may.
                waited = self._now() - heard_at
                if not self._opened or fault.status != UNAVAILABLE or waited > PATIENCE_S:
                    raise
                self._note(f"sexton: {fault.what.rstrip('.')}. Trying again.")
            self._sleep(self._again_s)

    def _read(self) -> Iterator[Frame]:
        for event in self._client.follow(self._path, self._last_id):
            if event.id:
                self._last_id = event.id
            if event.retry is not None:
                self._again_s = min(event.retry / 1000, MAX_AGAIN_S)
            if not self._opened:
                self._opened = True
                yield Frame("", OPENED, {})
            if event.data:
                yield _frame(event)


def _frame(event: SentEvent) -> Frame:
    try:
        data = orjson.loads(event.data)
    except orjson.JSONDecodeError:
        data = None
    # What is no object is shown as it came, for the stream goes on behind it.
    return Frame(event.id, event.event, data if isinstance(data, dict) else {"data": event.data})


def spell(frame: Frame) -> str:
    """One line for a person.

    >>> spell(Frame("7", "event_complete", {"at_ms": 0, "event_id": "0193-ab", "status": "processed"}))
    '1970-01-01 00:00:00Z  event_complete         0193-ab  status=processed'
    """
    own = [f"{name}={_value(value)}" for name, value in frame.data.items() if name not in ALWAYS]
    event_id = frame.data.get("event_id") or "-"
    at = moment(frame.data.get("at_ms")) or "-"
    return f"{at:<17}  {frame.kind:<21}  {event_id}  {' '.join(own)}".rstrip()


def spell_connection(data: Mapping[str, Any]) -> str:
    """What went where, and whether it was let through.

    >>> spell_connection({"method": "GET", "host": "a.org", "port": 443, "path": "/x", "verdict": "allowed"})
    'GET a.org:443/x allowed'
    """
    words = (data.get("method"), f"{data.get('host')}:{data.get('port')}{data.get('path') or ''}")
    why = f" ({data.get('why')})" if data.get("why") else ""
    return f"{' '.join(str(word) for word in words if word)} {data.get('verdict')}{why}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
