"""Asks models one after another: when one is busy the next is asked at once."""

import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import msgspec
import trio

from sexton_runner.providers.base import Again, Asking, Delta, Prompt, Provider, TextDelta, ToolCalled
from sexton_runner.providers.faults import (
    ModelAway,
    ModelFault,
    ModelRefused,
    ModelsBusy,
    QuotaUsed,
    WindowFull,
)
from sexton_runner.providers.retries import Patience

AVOIDED_S = 60.0
"""How long a busy model stands behind those that answer: to change models costs what they have cached."""
BUSY_S = 300.0
"""When models that were busy at every try, and did not say for how long, are asked again."""
RETURN_MAX_S = 3600.0
"""Whatever a provider says, it is asked again after an hour."""


@dataclass(slots=True, eq=False)
class Link:
    """One model of a chain; times are on trio's clock."""

    place: int
    """In the lease: 0 is its model, the others are its fallbacks."""
    provider: Provider
    model: str | None = None
    """None: the prompt's."""
    tried: int = field(default=0, init=False)
    """Tries of this question that came to nothing."""
    away_until: float = field(default=0.0, init=False)
    """It is not asked before."""
    avoided_until: float = field(default=0.0, init=False)
    """It is not asked before, if another can be."""
    out: ModelFault | None = field(default=None, init=False)
    """Why it is not asked any more in this run."""


def choose(links: Sequence[Link], tries: int, now: float) -> Link | None:
    """Give the link to ask next, at once or at its ``away_until``; None when all tries are used up.

    >>> first, second = Link(0, None), Link(1, None)
    >>> choose([first, second], 6, 5.0).place
    0
    >>> first.away_until, first.avoided_until = 7.0, 60.0
    >>> choose([first, second], 6, 5.0).place, choose([first, second], 6, 8.0).place
    (1, 1)
    >>> second.away_until = second.avoided_until = 9.0
    >>> choose([first, second], 6, 8.0).place, choose([first, second], 6, 9.0).place
    (0, 1)
    """
    usable = [link for link in links if link.out is None and link.tried < tries]
    return min(
        usable,
        key=lambda link: (max(link.away_until - now, 0.0), link.avoided_until > now, link.place),
        default=None,
    )


class ModelChain:
    """The models of one run as one provider; after the last try of the last of them the fault is raised.

    With ``gives_back`` a wait that is longer than patience goes, or tries that are used up by models that say
    they are busy, end in ``ModelsBusy``: the event can wait elsewhere, without a slot.
    """

    def __init__(
        self, links: Sequence[Link], patience: Patience, rng: random.Random, *, gives_back: bool = False
    ) -> None:
        self._links, self._patience, self._rng, self._gives_back = tuple(links), patience, rng, gives_back

    def __repr__(self) -> str:
        return f"<ModelChain {[link.provider for link in self._links]!r}>"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """Ask until answered, as ``Provider`` says; ``Again`` tells that what was shown is void."""
        for link in self._links:
            link.tried = 0
        link = self._next(None)
        while True:
            shown, fault = False, None
            await self._wait(link)
            if len(self._links) > 1:
                yield Asking(link.place)
            asked = prompt if link.model is None else msgspec.structs.replace(prompt, model=link.model)
            try:
                async with aclosing(link.provider.stream(asked)) as deltas:
                    async for delta in deltas:
                        shown = shown or isinstance(delta, TextDelta | ToolCalled)
                        yield delta
            except ModelFault as raised:
                fault = raised
            if fault is None:
                return
            self._note(link, fault)
            link = self._next(fault)
            yield Again(str(fault), void=shown, model=link.model or "" if len(self._links) > 1 else "")

    def _note(self, link: Link, fault: ModelFault) -> None:
        """Keep what the fault says of the model; raises one that no other model would answer better."""
        now = trio.current_time()
        if isinstance(fault, ModelAway):
            link.tried += 1
            link.away_until = now + self._patience.wait_s(link.tried, fault.retry_after_s, self._rng)
            link.avoided_until = max(link.away_until, now + AVOIDED_S)
        elif len(self._links) > 1 and (
            isinstance(fault, QuotaUsed)
            or (link.place > 0 and isinstance(fault, ModelRefused) and not isinstance(fault, WindowFull))
        ):
            link.out = fault
        else:
            raise fault

    def _next(self, fault: ModelFault | None) -> Link:
        """Choose who is asked now; raises why nobody is."""
        link = choose(self._links, self._patience.tries, trio.current_time())
        if link is not None:
            return link
        if self._gives_back and isinstance(fault, ModelAway) and fault.busy:
            raise ModelsBusy(str(fault), bounded(fault.retry_after_s or BUSY_S)) from fault
        raise fault or self._links[0].out or ModelAway("no model is left to ask")

    async def _wait(self, link: Link) -> None:
        wait_s, most = link.away_until - trio.current_time(), self._patience.wait_max_s
        if self._gives_back and wait_s > most:
            raise ModelsBusy(f"every model is busy for {wait_s:.0f} s or longer", bounded(wait_s))
        await trio.sleep(max(0.0, min(wait_s, most)))


def bounded(wait_s: float) -> float:
    """Give how long an event waits, in seconds.

    >>> bounded(0.2), bounded(90.0), bounded(1e9)
    (1.0, 90.0, 3600.0)
    """
    return min(max(wait_s, 1.0), RETURN_MAX_S)
