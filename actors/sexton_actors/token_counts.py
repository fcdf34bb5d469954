"""What a runner says that a run has used."""

import msgspec


class Tokens(msgspec.Struct, frozen=True):
    """Cumulative counts of tokens; those of the first two kinds are not counted in one another."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0


class Usage(msgspec.Struct, frozen=True):
    """``Counts`` by themselves."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    run_ms: int | None = None
    cache_write_tokens: int = 0
    fallbacks: tuple[Tokens, ...] = ()
