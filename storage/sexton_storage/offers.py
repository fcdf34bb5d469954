"""What a runner offers beside its labels, and whether that is all that an agent needs."""

import functools
import re
from collections.abc import Iterable
from typing import Final

MAX_OFFERS: Final = 256
MAX_OFFER_CHARS: Final = 256
NAMED: Final = "image|mcp"
"""Things that a runner has, by name."""
UNITS: Final = {"cpu": "", "memory": "MiB", "pids": "", "disk": "MiB", "wall": "s"}
"""What a run may have, and how it is measured."""
FACTS: Final = ("cpu-quota",)
"""``cpu-quota``: a run's share of the processors is bounded, not only its processor time."""
OFFER: Final = (
    rf"^(?:(?:{NAMED}):[A-Za-z0-9][A-Za-z0-9._@:-]*"
    rf"|(?:{'|'.join(UNITS)})<=[0-9]{{1,12}}(?:\.[0-9]{{1,3}})?(?:MiB|s)?|{'|'.join(FACTS)})$"
)
"""Neither a label of the operator's, nor a reserved one."""
_MEASURED: Final = re.compile(rf"({'|'.join(UNITS)})(<=|>=)([0-9]{{1,12}}(?:\.[0-9]{{1,3}})?)(MiB|s|)")


def at_least(measure: str, amount: float) -> str:
    """Say what an agent needs of a measure.

    >>> at_least("memory", 512), at_least("cpu", 0.5), at_least("wall", 90)
    ('memory>=512MiB', 'cpu>=0.5', 'wall>=90s')
    """
    return f"{measure}>={amount:.12g}{UNITS[measure]}"


def at_most(measure: str, amount: float) -> str:
    """Say how much of a measure a runner gives one run.

    >>> at_most("memory", 8192)
    'memory<=8192MiB'
    """
    return f"{measure}<={amount:.12g}{UNITS[measure]}"


@functools.lru_cache(maxsize=4096)
def unmet(abilities: frozenset[str], needs: tuple[str, ...]) -> tuple[str, ...]:
    """Give those needs that a runner with these labels and offers does not meet.

    A label is met by the same label, and a measure by a bound that is no lower. A runner that says nothing of
    a measure does not meet it: it may be one of an earlier release, which would not keep the bound.

    >>> unmet(frozenset({"gpu", "memory<=1024MiB"}), ("gpu", "memory>=512MiB"))
    ()
    >>> unmet(frozenset({"memory<=1024MiB"}), ("memory>=2048MiB", "cpu>=1", "image:web"))
    ('memory>=2048MiB', 'cpu>=1', 'image:web')
    """
    missing = [need for need in needs if need not in abilities]
    if not missing:
        return ()
    offered = [found for found in map(_MEASURED.fullmatch, abilities) if found is not None]
    bounds = {found[1]: float(found[3]) for found in offered if found[2] == "<="}
    return tuple(need for need in missing if not _is_within(need, bounds))


def _is_within(need: str, bounds: dict[str, float]) -> bool:
    found = _MEASURED.fullmatch(need)
    if found is None or found[2] != ">=":
        return False
    return float(found[3]) <= bounds.get(found[1], 0.0)


def nearest_unmet(runners: Iterable[frozenset[str]], needs: tuple[str, ...]) -> tuple[str, ...]:
    """Give what is missing of the runner that lacks least; all of it where there is no runner.

    >>> nearest_unmet([frozenset({"gpu"}), frozenset({"gpu", "eu"})], ("gpu", "eu", "image:web"))
    ('image:web',)
    >>> nearest_unmet([], ("gpu",))
    ('gpu',)
    """
    return min((unmet(abilities, needs) for abilities in runners), key=len, default=needs)
