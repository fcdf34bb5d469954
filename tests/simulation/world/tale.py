"""What happened in a run, in words for people: who did what, and when."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.simulation.world.timeline import START_S

_NOTED: Final = {
    "start": "is started",
    "kill": "is killed",
    "freeze": "is frozen",
    "thaw": "goes on",
    "power-off": "loses power",
    "power-on": "has power again",
    "cut": "cannot reach",
    "heal": "all cuts are healed",
    "reset": "connections are reset",
}
"""Words of the trace that are told, and how."""


class Told(NamedTuple):
    """One line: the time in simulated seconds, who, and what."""

    at_s: float
    who: str
    what: str
    is_of_world: bool = False
    """It is about machines and the network, so it concerns everybody."""

    def __str__(self) -> str:
        return f"{self.at_s:9.3f} s  {self.who:<10} {self.what}".rstrip()


class Tale:
    """Grows by lines while a run goes on."""

    def __init__(
        self,
        now: Callable[[], float],
        describe: Callable[[Any, Any], str] | None = None,
        start_s: float = START_S,
    ) -> None:
        self.now = now
        self.start_s = start_s
        """What calendars showed when ``now`` was 0."""
        self._describe = describe
        self.lines: list[Told] = []

    def tell(self, who: str, what: str) -> None:
        self.lines.append(Told(self.now(), who, what))

    def _note(self, who: str, what: str) -> None:
        self.lines.append(Told(self.now(), who, what, is_of_world=True))

    def noted(self, words: tuple[object, ...]) -> None:
        """Take a line of the trace, if it is one of those that people understand."""
        word = str(words[0])
        if word == "fault":
            self._note("fault", " ".join(map(str, words[1:])))
        elif word in _NOTED:
            who = str(words[1]) if len(words) > 1 else ""
            self._note(who, " ".join((_NOTED[word], *map(str, words[2:3]))))

    def written(self, who: str, write: Any, answer: Any) -> None:
        """Take a write that was committed, and what was answered."""
        if self._describe is not None and (what := self._describe(write, answer)):
            # What nobody heard of is about all who wait for an answer.
            self.lines.append(Told(self.now(), who, what, is_of_world=write is None))
