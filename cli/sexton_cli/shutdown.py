"""Stops a server in order on a signal: its runners, then its listeners, then its database."""

import signal
from collections.abc import AsyncIterator, Callable

import trio


class Shutdown:
    """What SIGTERM and SIGINT set in motion.

    The first one ends the runners, while the server still answers them; the rest follows when they have
    ended. The second one gives nobody the time to finish.
    """

    def __init__(self, everything: trio.CancelScope, say: Callable[[str], None]) -> None:
        self._everything = everything
        self._say = say
        self._runners: trio.CancelScope | None = None
        self._runners_have_ended = False
        self.hastened = trio.Event()
        """Set by the second signal: whoever drains is to let go of what he has."""

    def begin_with(self, runners: trio.CancelScope) -> None:
        """From now on the server answers, and runners may need it to end well."""
        self._runners = runners

    def runners_have_ended(self) -> None:
        """Nobody needs the server's answers any more."""
        self._runners_have_ended = True
        if self.hastened.is_set():
            self._everything.cancel()

    async def heed(self, signals: AsyncIterator[int]) -> None:
        """Wait for signals until cancelled."""
        async for number in signals:
            name = signal.Signals(number).name
            if self._runners is None:
                self._everything.cancel()
            elif not self._runners.cancel_called:
                self._say(f"{name}: stopping; runs that have begun may finish. The same again stops at once.")
                self._runners.cancel()
            else:
                self._say(f"{name}: stopping at once; what was begun is given back.")
                self.hastened.set()
                if self._runners_have_ended:
                    self._everything.cancel()
