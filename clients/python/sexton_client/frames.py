"""What a stream has brought so far, and when it may be opened again: no network, no clock of its own."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import httpx2
import msgspec

from sexton_client.errors import ApiError, ConnectionFailed, NotFound, NotUnderstood, SextonError
from sexton_client.retries import Patience

MAX_FRAME_BYTES: Final = 1024 * 1024
"""A server's frame has 64 KiB of text; escaped that is 384 KiB at most."""
SILENCE_S: Final = 45.0
"""The server sends a sign of life each 15 s; whoever hears none for so long is cut off."""
MEDIA: Final = "text/event-stream"
_USUAL_PAUSE_S: Final = 2.0
_LONGEST_PAUSE_S: Final = 30.0
_REPEATED: Final = frozenset({"kind", "event_id", "zombie_id", "at_ms"})


class Frame(NamedTuple):
    """One thing that happened."""

    id: str
    """Where the stream goes on after it, for ``last_event_id``."""
    kind: str
    """Such as ``event_received``, ``chunk`` or ``event_complete``."""
    event_id: str | None
    agent_id: str | None
    at_ms: int | None
    """Unix ms, by the clock of the one who saw it; only ``id`` orders a stream."""
    data: Mapping[str, Any]
    """What the kind adds."""


class Place:
    """Where a stream stands. Nothing is missed and nothing comes twice: it goes on after the last id.

    >>> place = Place(None, Patience())
    >>> place.take(httpx2.ServerSentEvent(id="7")), place.headers()
    (None, {'last-event-id': '7'})
    >>> said = httpx2.ServerSentEvent("chunk", '{"kind": "chunk", "text": "hello"}', "8")
    >>> place.take(said).data, place.take(said)
    ({'text': 'hello'}, None)
    """

    def __init__(self, last_id: str | None, patience: Patience) -> None:
        self._last_id = last_id
        self._patience = patience
        self._away_since_s: float | None = None
        self._pause_s = _USUAL_PAUSE_S
        self._tries = 0
        self._was_open = False

    def __repr__(self) -> str:
        return f"<Place after {self._last_id}>"

    @property
    def last_id(self) -> str | None:
        """What came last, from this run of the program or from the one before."""
        return self._last_id

    def headers(self) -> dict[str, str]:
        """Ask for what came after."""
        return {} if self._last_id is None else {"last-event-id": self._last_id}

    def opened(self) -> None:
        """The server let the stream in."""
        self._was_open, self._away_since_s, self._tries = True, None, 0

    def take(self, event: httpx2.ServerSentEvent) -> Frame | None:
        """The frame of a server-sent event; None for a place alone, and for what was here before."""
        if event.retry is not None:
            self._pause_s = min(max(event.retry, 0) / 1000, _LONGEST_PAUSE_S)
        is_repeat = bool(event.id) and _is_not_after(event.id, self._last_id)
        if event.id and not is_repeat:
            self._last_id = event.id
        return None if is_repeat or not event.data else _frame(event)

    def pause_s(self, fault: SextonError | None, *, now_s: float, dice: float) -> float | None:
        """How long to wait before it is opened again; None when it is over. Raises what cannot be waited out.

        ``fault`` None: the server ended it properly, as one that stops does.
        """
        if isinstance(fault, NotFound) and self._was_open:
            return None  # What it was about has been deleted.
        if fault is not None:
            self._check_patience(fault, now_s)
        self._tries += 1
        usual = min(self._pause_s * 2.0 ** min(self._tries - 1, 8), _LONGEST_PAUSE_S)
        asked = fault.retry_after_s if isinstance(fault, ApiError) else None
        return min(usual if asked is None else asked, self._patience.longest_wait_s) * (1 + dice / 4)

    def _check_patience(self, fault: SextonError, now_s: float) -> None:
        self._away_since_s = now_s if self._away_since_s is None else self._away_since_s
        is_over = now_s - self._away_since_s > self._patience.outage_s
        never_was = not self._was_open and self._tries + 1 >= self._patience.tries
        if is_over or never_was or not _passes(fault):
            raise fault


def _passes(fault: SextonError) -> bool:
    """Whether a server that is away, stops or is full may let the stream in later."""
    if isinstance(fault, ApiError):
        return fault.status == HTTPStatus.TOO_MANY_REQUESTS or fault.status >= HTTPStatus.BAD_GATEWAY
    return isinstance(fault, ConnectionFailed)


def _is_not_after(given: str, last: str | None) -> bool:
    """Numbers of an agent's frames grow; places of a workspace can only be the same.

    >>> (
    ...     _is_not_after("7", "8"),
    ...     _is_not_after("9", "8"),
    ...     _is_not_after("p.x", "p.x"),
    ...     _is_not_after("1", None),
    ... )
    (True, False, True, False)
    """
    if last is None:
        return False
    if given.isascii() and given.isdigit() and last.isascii() and last.isdigit():
        return int(given) <= int(last)
    return given == last


def _frame(event: httpx2.ServerSentEvent) -> Frame:
    try:
        data = msgspec.json.decode(event.data)
    except (msgspec.MsgspecError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise NotUnderstood("A frame of the stream holds no JSON object.", "Look for a proxy in between.")
    at_ms = data.get("at_ms")
    return Frame(
        id=event.id,
        kind=event.event,
        event_id=_text(data.get("event_id")),
        agent_id=_text(data.get("zombie_id")),
        at_ms=at_ms if isinstance(at_ms, int) else None,
        data={name: value for name, value in data.items() if name not in _REPEATED},
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def check_opened(response: httpx2.Response, base_url: str) -> None:
    """Raise NotUnderstood for an answer of 200 that is no stream."""
    media = response.headers.get("content-type", "")
    if not media.startswith(MEDIA):
        raise NotUnderstood(
            f"{base_url} answered with {media[:80] or 'no media type'} in place of a stream.",
            "Look for a proxy in between.",
        )
