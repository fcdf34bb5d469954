"""``sexton version``: what is installed here."""

import platform
from importlib.metadata import version as installed
from typing import Final

from sexton_cli.caller import Caller
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_storage.schema_number import schema_number

PACKAGE: Final = "sexton"


@command()
@calling
def version(caller: Caller) -> None:
    """Show the release that is installed here, its Python, and the schema that it brings; asks no server.

    'sexton server health' tells a server's release, 'sexton runner list' that of each runner.
    """
    facts = {
        "release": installed(PACKAGE),
        "python": platform.python_version(),
        "schema": schema_number(),
    }
    caller.output.thing(facts, facts)
