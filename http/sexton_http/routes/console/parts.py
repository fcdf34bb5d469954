"""The page that shows each part of the console once, for those who work on it."""

from typing import Final

from sexton_http.answers import Answer
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.identity.principals import SignedIn, check_platform
from sexton_http.pages.form_actions import page_operation
from sexton_http.pages.templates import words
from sexton_http.pages.templates.frame import Frame, show

SAMPLES: Final = (words.EVENTS, words.GATES, words.AGENTS, words.RUNNERS)
AGES_MS: Final = (0, 12_000, 180_000, 7_200_000, -1_560_000)
SPANS_MS: Final = (8, 1_400, 64_000, 3_600_000, 90_000_000)
SUMS: Final = (0, 85_000, 21_400_000, 4_180_000_000, 1_234_500_000_000)
HOSTILE: Final = "<script>alert(1)</script> \u202e \x1b[31m " + "x" * 2_000


@page_operation("/console/parts")
async def show_parts(call: Call[NoBody, NoQuery], who: SignedIn) -> Answer:
    """Show each part of the console once, to platform admins."""
    check_platform(who.member)
    now = call.ctx.world.now_ms()
    return show(
        Frame("Parts", "", who),
        "parts_page",
        samples=[sorted(marks.items()) for marks in SAMPLES],
        times=[now - age for age in AGES_MS],
        spans=SPANS_MS,
        sums=SUMS,
        ident=call.ctx.world.new_id(),
        hostile=HOSTILE,
        now=now,
    )
