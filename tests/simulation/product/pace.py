"""How dense a life is: how often people do something, how often something goes wrong, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.simulation.product.slow_agents import AGENTS, SlowAgent
from tests.simulation.world.timeline import START_S

Span = tuple[float, float]
"""The least and the most, in seconds."""
WEEK_S: Final = 7 * 24 * 3600
YEAR_BEGINS_S: Final = 1_820_188_800.0
"""2027-09-06 00:00 UTC, a Monday. The 52 weeks from there on have a leap day and every change of a clock."""
WEEKS: Final = 52


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long what goes wrong lasts."""

    apart: Span = (1.0, 12.0)
    """From one misfortune to the next."""
    dead: Span = (0.1, 40)
    powerless: Span = (1, 60)
    frozen: tuple[Span, Span] = ((0.1, 5), (20, 90))
    """Either for so short or for so long."""
    cut: Span = (0.5, 50)
    database_away: Span = (0.2, 25)
    database_cut_off: Span = (0.5, 45)
    database_slow: Span = (1, 20)
    signals_lost: Span = (5, 40)
    network_slow: Span = (2, 30)
    draining: Span = (5, 40)
    between_starts: Span = (5, 60)
    skew_s: float = 3600
    """By how much a calendar jumps, either way."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How often people do what they do."""

    delivery_s: float = 6.0
    """Between two deliveries of one sender, on average."""
    varied_deliveries: bool = False
    """Whether deliveries tell of several actions, and some come again without an id."""
    at_gates: Span = (1, 10)
    away_from_gates: Span = (40, 110)
    """For so long that runs park, and gates time out."""
    pry: Span = (2, 12)
    again: Span = (0.2, 2)
    """After a request that has come to nothing."""
    follow_for: Span | None = None
    """Who follows a stream goes away after this; None: never."""
    follow_again: Span = (0.2, 2)
    guests: Span | None = None
    """Between two looks of those whose keys expire; None: there are none."""
    jobs: Span | None = None
    """Between two bulk jobs of an operator; None: there is none."""
    erasures: Span | None = None
    """Before the first erasure; before the second it is twice as long, and so on. None: there are none."""
    credit: Span | None = None
    """How long it takes until there is credit again, where it is short; None: it is short nowhere."""
    follow_ups: Span | None = None
    """Between two looks of who takes follow-ups back; None: runs ask for none."""
    proposals: Span | None = None
    """Between two looks of who decides on proposals; None: runs make none."""


@dataclass(frozen=True, slots=True)
class Pace:
    """All of it."""

    name: str
    kinds: tuple[str, ...]
    """What goes wrong."""
    strikes: int = 0
    """How much likelier than one of the kinds it is that a server is hit between a commit and its answer."""
    hang_ups: int = 0
    """How much likelier than one of the kinds it is that a runner is cut off before it hears of its lease."""
    lengths: Lengths = Lengths()
    habits: Habits = Habits()
    agents: tuple[SlowAgent, ...] = ()
    """What is installed; none: agents without plans, but for the first."""
    look_s: float = 1.0
    """How often the judges look."""
    programs_every: int = 10
    """One look in this number is at the memory of the programs too, which costs more."""
    late_s: float = 0.0
    """By how much servers that look rarely may be later than others."""
    settling_s: float = 40.0
    """After the last fault: a term and a second for what the dead held, and time to connect again."""
    is_rare: bool = False
    """Servers and runners look as rarely as their options and constants allow."""
    years: bool = False
    """Each seed is another week of the year; else all are the same day."""

    def start_s(self, seed: int) -> float:
        """What calendars show when the seed begins.

        >>> SLOW.start_s(0) == SLOW.start_s(52), (SLOW.start_s(1) - SLOW.start_s(0)) / 86_400
        (True, 7.0)
        """
        return YEAR_BEGINS_S + seed % WEEKS * WEEK_S if self.years else START_S


KINDS: Final = (
    "kill",
    "power_off",
    "freeze",
    "cut",
    "reset",
    "lose_database",
    "cut_off_database",
    "slow_database",
    "lose_signals",
    "shift_clock",
    "slow_network",
    "drain",
)
DENSE: Final = Pace(
    "dense",
    KINDS,
    strikes=2,
    hang_ups=1,
    habits=Habits(
        varied_deliveries=True,
        jobs=(10, 90),
        erasures=(20, 60),
        credit=(5, 30),
        follow_ups=(3, 9),
        proposals=(2, 8),
    ),
)
SLOW: Final = Pace(
    "slow",
    (*KINDS, "deploy"),
    lengths=Lengths(
        apart=(600, 5_000),
        dead=(10, 900),
        powerless=(60, 3_600),
        frozen=((60, 600), (1_800, 10_800)),
        cut=(30, 1_800),
        database_away=(60, 900),
        database_cut_off=(60, 1_800),
        database_slow=(30, 600),
        signals_lost=(300, 3_600),
        network_slow=(60, 1_800),
        draining=(30, 300),
        between_starts=(5, 60),
        skew_s=2 * 86_400,
    ),
    habits=Habits(
        delivery_s=3_600,
        at_gates=(1_200, 10_800),
        away_from_gates=(14_400, 36_000),
        pry=(1_800, 7_200),
        again=(5, 60),
        follow_for=(300, 1_800),
        follow_again=(1_800, 18_000),
        guests=(600, 3_000),
    ),
    agents=AGENTS,
    look_s=60.0,
    programs_every=10,
    late_s=120.0,
    settling_s=300.0,
    is_rare=True,
    years=True,
)
PACES: Final = {pace.name: pace for pace in (DENSE, SLOW)}
