"""Ends a run that takes too long; the time spent waiting for a person does not count."""

import math

import trio

from sexton_runner.lease import Usage


class TimeLimit:
    """A scope for a whole run. ``rest`` lets both the wall's clock and the billed one stand."""

    def __init__(self, seconds: float, usage: Usage) -> None:
        self._left, self._usage = seconds, usage
        self.scope = trio.CancelScope()

    def begin(self) -> trio.CancelScope:
        """Start the clock and give the scope to run in."""
        self.scope.deadline = trio.current_time() + self._left
        return self.scope

    def rest(self, begins: bool) -> None:  # noqa: FBT001 - a callback with one meaning
        """Hear that the run begins, or ends, to wait for a person."""
        if begins:
            self._usage.rest()
            self._left = self.scope.deadline - trio.current_time()
            self.scope.deadline = math.inf
        else:
            self._usage.go()
            self.scope.deadline = trio.current_time() + self._left
