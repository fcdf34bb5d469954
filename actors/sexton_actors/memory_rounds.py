"""Decides when freed memory is given back to the kernel: after a peak, once it is over, and not too often."""

from typing import Final

import msgspec

ROUND_S: Final = 10.0
WORTH_BYTES: Final = 16 * 2**20
"""Less above the least that was seen is not worth the work."""
WORTH_PART: Final = 4
"""Nor is less than the least that was seen divided by this."""
RISING_PART: Final = 50
"""Memory that grew within a round by more than itself divided by this is still rising."""
GAIN_BYTES: Final = 4 * 2**20
"""A trim that gave back less was in vain: what is held is in use."""
PAUSE_ROUNDS_MAX: Final = 12
"""Two minutes: after a peak that lasts long, this is the longest that memory stays in vain."""


class MemoryState(msgspec.Struct, frozen=True):
    """What the rounds know of the process; sizes are bytes, 0 before the first round."""

    least: int = 0
    """The least that was resident since the start."""
    last: int = 0
    """What was resident in the last round."""
    peak: int = 0
    """The most that was resident in any round since the start."""
    trims: int = 0
    before_trim: int = 0
    """What was resident when the last trim began; 0 once its outcome was seen."""
    pause: int = 0
    """How many rounds are left out after the next trim in vain."""
    wait: int = 0
    """Rounds that are still left out."""


def look(state: MemoryState, resident: int) -> tuple[MemoryState, bool]:
    """One round: what is known then, and whether to trim now.

    >>> MiB = 2**20
    >>> state, _ = look(MemoryState(), 100 * MiB)
    >>> state, trims = look(state, 900 * MiB)  # It rises.
    >>> trims
    False
    >>> state, trims = look(state, 900 * MiB)  # The peak is over.
    >>> trims
    True
    >>> state, trims = look(state, 110 * MiB)  # That is little more than there was.
    >>> trims, state.trims, state.peak // MiB
    (False, 1, 900)
    """
    least = resident if state.least == 0 else min(state.least, resident)
    pause, wait = state.pause, max(0, state.wait - 1)
    if state.before_trim:
        in_vain = state.before_trim - resident < GAIN_BYTES
        pause = min(PAUSE_ROUNDS_MAX, 2 * pause + 1) if in_vain else 0
        wait = pause
    is_rising = state.last > 0 and resident - state.last > state.last // RISING_PART
    is_worth_it = resident - least > max(WORTH_BYTES, least // WORTH_PART)
    trims = is_worth_it and not is_rising and wait == 0
    state = MemoryState(
        least=least,
        last=resident,
        peak=max(state.peak, resident),
        trims=state.trims + trims,
        before_trim=resident if trims else 0,
        pause=pause,
        wait=wait,
    )
    return state, trims
