"""How patiently models are asked that do not answer."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often each model is asked, and how long is waited, in seconds.

    ``wait_max_s`` bounds also what a provider asks to wait, where the run cannot be given back meanwhile.
    """

    tries: int = 6
    wait_first_s: float = 1.0
    wait_max_s: float = 60.0

    def wait_s(self, tried: int, asked_s: float | None, rng: random.Random) -> float:
        """Say how long to wait after that many tries: what the provider asks, else doubling, with jitter.

        >>> Patience().wait_s(1, 90.0, random.Random(1))
        90.0
        """
        if asked_s is not None:
            return asked_s
        full = min(self.wait_max_s, self.wait_first_s * 2.0 ** (tried - 1))
        return full * (0.5 + 0.5 * rng.random())
