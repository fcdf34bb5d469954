"""The options that say how strict a server is with those who reach it by a browser or a terminal."""

from typing import Final

import click

from sexton_cli.commands.ceiling_options import Option, bound
from sexton_http.identity.sign_in_terms import SignInTerms

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS

SIGN_IN_OPTIONS: Final[tuple[Option, ...]] = (
    bound(
        "sign-in-hours",
        click.IntRange(1, 8_760),
        None,
        "Hours that a sign-in lasts at most. [default: 720 in browsers, 8,760 at terminals]",
    ),
    bound(
        "sign-in-idle-minutes",
        click.IntRange(5, 43_200),
        None,
        "Minutes without use after which a sign-in ends. [default: 10,080 in browsers, 43,200 at terminals]",
    ),
    click.option(
        "--hsts-subdomains",
        is_flag=True,
        envvar="SEXTON_HSTS_SUBDOMAINS",
        help="Have browsers reach the server's subdomains over TLS only, too (HSTS includeSubDomains).",
    ),
)


def take_sign_ins(given: dict[str, object]) -> SignInTerms:
    """What the options say, taken out of ``given``.

    >>> take_sign_ins({"sign_in_hours": 12, "sign_in_idle_minutes": None})
    SignInTerms(life_ms=43200000, idle_ms=None)
    """
    hours, minutes = given.pop("sign_in_hours"), given.pop("sign_in_idle_minutes")
    return SignInTerms(
        hours * HOUR_MS if isinstance(hours, int) else None,
        minutes * MINUTE_MS if isinstance(minutes, int) else None,
    )
