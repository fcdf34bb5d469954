"""Takes a certificate up again when its files change, for the connections that come after."""

import signal
from collections.abc import Callable
from typing import Final

import structlog
import trio

from sexton_http.wire.tls import Tls

LOOK_S: Final = 5.0
"""How often the files are looked at; a signal need not wait for it."""
Stamp = tuple[int, int, int] | None

log = structlog.get_logger()


def _nothing() -> None:
    """Nobody else keeps what is shown."""


class LiveCertificate:
    """What is shown to new connections. Those that are open keep what they were shown, and are not cut."""

    def __init__(self, tls: Tls, on_change: Callable[[], object] = _nothing) -> None:
        """Raises OSError when the files cannot be used. ``on_change`` is called when others are taken up."""
        self._tls = tls
        self._on_change = on_change
        self._seen = self._stamps()
        self.context = tls.context()

    def __repr__(self) -> str:
        return f"<LiveCertificate {self._tls.certificate}>"

    def look(self) -> None:
        """Take up what lies there, if it is new and whole; half of a pair is told of, and waited out."""
        seen = self._stamps()
        if seen == self._seen:
            return
        self._seen = seen  # What is wrong is told once for each change.
        problem = self._tls.problem()
        if problem is not None:
            log.warning("certificate_not_taken_up", problem=problem)
            return
        self.context = self._tls.context()
        log.info("certificate_taken_up", file=str(self._tls.certificate))
        self._on_change()

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await trio.sleep(LOOK_S)
            self.look()

    async def heed_hangups(self) -> None:
        """Look at once on SIGHUP, until cancelled; from the main thread."""
        with trio.open_signal_receiver(signal.SIGHUP) as signals:
            async for _ in signals:
                self.look()

    def _stamps(self) -> tuple[Stamp, ...]:
        stamps: list[Stamp] = []
        for file in (self._tls.certificate, self._tls.key):
            try:
                found = file.stat()
            except OSError:
                stamps.append(None)
            else:
                stamps.append((found.st_ino, found.st_mtime_ns, found.st_size))
        return tuple(stamps)
