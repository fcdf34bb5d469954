"""Plants a fault in the product while a block runs."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from tests.simulation.product.life import Size
from tests.simulation.shrink import failure_of

MOST_SEEDS: Final = 200
PRODUCT: Final = "sexton_"


class Fault(NamedTuple):
    """What is put into which place; ``make`` is given what was there."""

    name: str
    says: str
    module: str
    attribute: str
    """A function of the module, or a method as ``Class.method``."""
    make: Callable[[Any], Any]
    beside: tuple[tuple[str, str, Callable[[Any], Any]], ...] = ()
    """What else has to be wrong, where the product holds the same promise twice: module, attribute, make."""


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Have the product do wrong until the end of the block, wherever the function is known by a name."""
    kept: list[tuple[Any, str, Any]] = []
    for module, attribute, make in ((fault.module, fault.attribute, fault.make), *fault.beside):
        for owner, name, before in list(_places(module, attribute)):
            kept.append((owner, name, before))
            setattr(owner, name, make(before))
    try:
        yield
    finally:
        for owner, name, before in reversed(kept):
            setattr(owner, name, before)


def _places(module_name: str, attribute: str) -> Iterator[tuple[Any, str, Any]]:
    module = importlib.import_module(module_name)
    *path, name = attribute.split(".")
    owner: Any = module
    for part in path:
        owner = getattr(owner, part)
    before = inspect.getattr_static(owner, name)
    yield owner, name, before
    if path:
        return
    for other in list(sys.modules.values()):
        if other is not module and getattr(other, "__name__", "").startswith(PRODUCT):
            for known, value in list(vars(other).items()):
                if value is before:
                    yield other, known, before


def found(fault: Fault, size: Size, seeds: int = MOST_SEEDS) -> tuple[int, str] | None:
    """The first seed whose judges notice the fault, and which judge that was."""
    with planted(fault):
        for seed in range(seeds):
            failure = failure_of(seed, size)
            if failure is not None:
                return seed, failure.judge
    return None
