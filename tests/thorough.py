"""How much tests try that could go on for ever: some in `make test`, all in `make test-thorough`."""

import os

THOROUGH = bool(os.environ.get("SEXTON_THOROUGH"))
LEAST_EXAMPLES = 8
PART = 4


def amount(ordinary: int, thorough: int, *, variable: str) -> int:
    """One of the two, or what the environment's variable says."""
    return int(os.environ.get(variable, thorough if THOROUGH else ordinary))


def examples(thorough: int) -> int:
    """How many examples of generated input are tried; each run tries others, an ordinary one a part."""
    return thorough if THOROUGH else min(thorough, max(LEAST_EXAMPLES, thorough // PART))
