"""The options that say how much a server takes on at once."""

from typing import Final

import click

from sexton_http.identity.context import MAX_IN_FLIGHT, MAX_LONG_POLLS, MAX_STREAMS
from sexton_http.wire.connection_ceilings import MAX_CONNECTIONS

COUNT: Final = click.IntRange(1)

CEILING_OPTIONS: Final = (
    click.option(
        "--max-in-flight",
        type=COUNT,
        default=MAX_IN_FLIGHT,
        show_default=True,
        envvar="SEXTON_MAX_IN_FLIGHT",
        help="Ordinary requests at once.",
    ),
    click.option(
        "--max-long-polls",
        type=COUNT,
        default=MAX_LONG_POLLS,
        show_default=True,
        envvar="SEXTON_MAX_LONG_POLLS",
        help="Long polls of runners at once.",
    ),
    click.option(
        "--max-streams",
        type=COUNT,
        default=MAX_STREAMS,
        show_default=True,
        envvar="SEXTON_MAX_STREAMS",
        help="Streams of server-sent events at once.",
    ),
    click.option(
        "--max-connections",
        type=COUNT,
        default=MAX_CONNECTIONS,
        show_default=True,
        envvar="SEXTON_MAX_CONNECTIONS",
        help="Connections at once; fewer where the limit on open files is lower.",
    ),
    click.option(
        "--max-connections-per-address",
        type=COUNT,
        envvar="SEXTON_MAX_CONNECTIONS_PER_ADDRESS",
        help="Connections from one address at once; trusted proxies are not counted. [default: half of all]",
    ),
)
