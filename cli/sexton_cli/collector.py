"""How often a busy server's process looks for circles of garbage."""

import gc

COLLECT_AFTER = (50_000, 20, 50)
"""Objects made before the collector looks at the young ones; rounds before it looks at older ones."""


def spare_the_collector() -> None:
    """Have the cyclic collector come rarely.

    What is there now stays for good, and what comes after is mostly freed by its reference count: to look
    through all of it every few hundred allocations was two fifths of the work of a busy node.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
