"""Faults in what runners do with the leases that they hold."""

from __future__ import annotations

from typing import Any, Final

from tests.simulation.drill.planting import Fault


def _nothing(_: Any) -> Any:
    return lambda *_, **__: None


def _never_over(_: Any) -> Any:
    return lambda self: None


FAULTS: Final = (
    Fault(
        "run-goes-on",
        "a runner whose lease is lost runs on",
        "sexton_runner.lease",
        "LiveLease.halt",
        _nothing,
    ),
    Fault(
        "term-ignored",
        "a runner that hears nothing runs on after its term",
        "sexton_runner.renewal",
        "Renewer._expire",
        _never_over,
    ),
)
