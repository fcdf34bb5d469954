"""What a runner says that a run has used."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from sexton_actors.token_counts import Tokens
from sexton_http.bodies.shapes import Body, Count

MAX_FALLBACKS: Final = 7


class FallbackCounts(Body):
    """What one model after the first has used, cumulative over the lease."""

    input_tokens: Count = 0
    cached_input_tokens: Count = 0
    cache_write_tokens: Count = 0
    output_tokens: Count = 0


Fallbacks = Annotated[tuple[FallbackCounts, ...], msgspec.Meta(max_length=MAX_FALLBACKS)]
"""In the order of the lease's ``policy.fallbacks``; part of the counts beside it."""


def tokens_of(fallbacks: Sequence[FallbackCounts]) -> tuple[Tokens, ...]:
    """The same for the lease."""
    return tuple(
        Tokens(one.input_tokens, one.cached_input_tokens, one.cache_write_tokens, one.output_tokens)
        for one in fallbacks
    )
