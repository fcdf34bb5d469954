"""The nouns all of whose verbs stand elsewhere: short forms have them, too."""

from sexton_cli.commands.late_group import noun
from sexton_cli.commands.table import ASSISTANT, AUTH, FLEET, MEMORY, SERVER


@noun(late=SERVER)
def server() -> None:
    """Start a server, bring its schema up to date, and see how it is and how it was set up."""


@noun(late=AUTH)
def auth() -> None:
    """Sign in and out, and ask whom the server takes you for."""


@noun(late=MEMORY)
def memory() -> None:
    """List and forget what an agent remembers."""


@noun(late=FLEET)
def fleet() -> None:
    """Watch queue, leases, runners and actors of the whole platform; for platform admins."""


@noun(late=ASSISTANT)
def assistant() -> None:
    """Connect an assistant to the server by MCP."""
