"""What all calls of a runner on its lease have in common."""

from typing import Annotated, Final

import msgspec

from sexton_http.bodies.shapes import Count

TAG: Final = "Runner plane"
FENCED: Final = ("UZ-RUN-005", "UZ-RUN-006")
HOT_S: Final = 5.0
"""How long a runner is kept waiting for an answer: it says the same again, and its lease runs meanwhile."""

Token = Annotated[Count | None, msgspec.Meta(description="The lease's; where it is given it must fit.")]
