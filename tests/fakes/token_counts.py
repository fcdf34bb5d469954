"""What a runner says that one of several models has used, as the wire contract has it."""

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]


class FallbackCounts(msgspec.Struct, forbid_unknown_fields=True):
    input_tokens: Count
    cached_input_tokens: Count
    cache_write_tokens: Count
    output_tokens: Count
