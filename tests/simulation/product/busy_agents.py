"""Agents of the dense pace: one is woken each minute, one has a priced model, one has rules at its door."""

from __future__ import annotations

from typing import Final, NamedTuple

from sexton_actors.catalogue import Model
from tests.simulation.product.deliveries import FORBIDDEN, STOPPED

CRON: Final = """
  - type: cron
    schedule: "* * * * *"
"""
GATES: Final = "gates: {timeout_ms: 90000}"
MODEL: Final = Model("priced", "nobody", 200_000, 40_000_000, 4_000_000, 200_000_000, 50_000_000)
"""A thousand tokens read cost as much as four tenths of a second of a run."""
RULES: Final = f"""gates:
  timeout_ms: 60000
  rules:
    - {{tool: workflow_run.{STOPPED}, action: "webhook:*", behavior: approve}}
    - {{tool: workflow_run.{FORBIDDEN}, action: "webhook:*", behavior: deny}}
"""


class BusyAgent(NamedTuple):
    """What its files say."""

    lines: str = GATES
    """Further lines of TRIGGER.md."""
    model: str = ""
    is_written_to: bool = True
    """Deliveries go to it too."""

    def config(self) -> str:
        return self.lines


AGENTS: Final = (
    BusyAgent(CRON + GATES),
    BusyAgent(model=MODEL.id),
    BusyAgent(RULES),
    BusyAgent(),
)
PLAIN: Final = (BusyAgent(CRON + GATES), BusyAgent(), BusyAgent(), BusyAgent())
"""Those of lives that were kept before."""
