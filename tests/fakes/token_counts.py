"""What a runner says that a run has used, as the wire contract has it."""

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]


class FallbackCounts(msgspec.Struct, forbid_unknown_fields=True):
    input_tokens: Count
    cached_input_tokens: Count
    cache_write_tokens: Count
    output_tokens: Count


class Renew(msgspec.Struct, forbid_unknown_fields=True):
    input_tokens: Count
    cached_input_tokens: Count
    output_tokens: Count
    run_ms: Count = 0
    cache_write_tokens: Count = 0
    fallbacks: list[FallbackCounts] = []
