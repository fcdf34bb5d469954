"""Turns a command's reports about its steps into activity frames."""

from collections.abc import Callable

from sexton_runner import frames
from sexton_runner.frames import Frame
from sexton_runner.timing import Clock


class StepFrames:
    """The steps of one run, one open at a time. Names are redacted by whoever gives them."""

    def __init__(self, show: Callable[[Frame], None], clock: Clock) -> None:
        self._show = show
        self._clock = clock
        self._name: str | None = None
        self._since = 0.0

    def begin(self, name: str) -> None:
        """Begin a step; the one before it has gone well."""
        self.end(ok=True)
        self._name, self._since = name, self._clock()
        self._show(frames.step_started(name))

    def progress(self) -> None:
        """Show that the open step goes on; nothing when none is open."""
        if self._name is not None:
            self._show(frames.step_progress(self._name, self._ms()))

    def end(self, *, ok: bool) -> None:
        """End the open step; nothing when none is open."""
        if self._name is not None:
            self._show(frames.step_completed(self._name, self._ms(), ok=ok))
            self._name = None

    def _ms(self) -> int:
        return int((self._clock() - self._since) * 1000)
