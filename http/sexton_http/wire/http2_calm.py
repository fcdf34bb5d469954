"""Decides when a client of HTTP/2 asks for nothing, and too much of it."""

from typing import Final

IDLE_BURST: Final = 128 * 1024.0
"""Bytes beside requests and bodies that a client may send at once, as 7,700 pings. A head fits in it."""
IDLE_PER_S: Final = 1024.0
"""How much of that it gets back in a second."""
PER_REQUEST: Final = 1024.0
"""What a request may cost beside its head and its body: the windows that it opens."""
PER_WRITE: Final = 64.0
"""What an answer under way earns with each part: the client opens its windows again."""
RESET_BURST: Final = 200.0
"""Streams that a client may take back, or open beyond the bound, at once."""
RESETS_PER_S: Final = 20.0
FILL_S: Final = 1 / 16
"""The accounts are filled no more often, unless one is empty: each request would pay for it."""


class Calm:
    """Two accounts of one connection; both fill with time and with honest work, up to their burst.

    Frames are not told apart: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, DATA without data and unknown ones all
    cost their bytes, and only requests, bodies and what is sent to the client earn.

    >>> calm = Calm(0.0)
    >>> calm.received(0.0, 130_000), calm.received(0.0, 6_000)
    (True, False)
    >>> calm = Calm(0.0)
    >>> all(calm.received(float(second), 17) for second in range(100_000))
    True
    >>> calm.asked(1_000_000), calm.received(100_000.0, 140_000)
    (None, False)
    >>> calm = Calm(0.0)
    >>> sum(calm.reset(0.0) for _ in range(1_000))
    200
    """

    __slots__ = ("_at", "_idle", "_resets")

    def __init__(self, now: float) -> None:
        self._at = now
        self._idle = IDLE_BURST
        self._resets = RESET_BURST

    def received(self, now: float, size: int) -> bool:
        """Count that many bytes that were no body; whether the client may go on."""
        if now - self._at >= FILL_S or size > self._idle:
            self._fill(now)
        # What was earned since the last bytes is over the burst here, if at all.
        self._idle = min(IDLE_BURST, self._idle) - size
        return self._idle >= 0

    def reset(self, now: float) -> bool:
        """Count a stream that came to nothing; whether the client may go on."""
        self._fill(now)
        self._resets -= 1
        return self._resets >= 0

    def asked(self, head_bytes: int) -> None:
        """A request came whose head is this large."""
        self._idle += PER_REQUEST + head_bytes

    def wrote(self) -> None:
        """A part of an answer was sent."""
        self._idle += PER_WRITE

    def _fill(self, now: float) -> None:
        gone, self._at = now - self._at, now
        self._idle = min(IDLE_BURST, self._idle + gone * IDLE_PER_S)
        self._resets = min(RESET_BURST, self._resets + gone * RESETS_PER_S)
