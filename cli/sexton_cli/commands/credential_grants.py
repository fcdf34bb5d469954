"""``sexton credentials grants``: which agents may be lent which credentials, and the word on it."""

from collections.abc import Sequence

from sexton_cli.caller import Caller
from sexton_cli.client import Client
from sexton_cli.commands.grant_decisions import add_decisions, add_list
from sexton_cli.commands.late_group import noun
from sexton_cli.lookups import agent_path, segment
from sexton_cli.output import Column

GRANT = {"zombie_id": str, "credential": str, "status": str}
COLUMNS = (
    Column("agent", "AGENT", elastic=True),
    Column("credential", "CREDENTIAL", elastic=True),
    Column("status", "STATUS"),
    Column("hosts", "HOSTS", elastic=True),
    Column("tools", "TOOLS", spare=True),
    Column("requested", "ASKED", spare=True),
)


@noun()
def grants() -> None:
    """List, approve, deny and revoke the lending of credentials to agents."""


def _find(caller: Caller, client: Client, given: Sequence[str]) -> tuple[str, str]:
    agent, credential = given
    path = f"{agent_path(caller, client, agent)}/credential-grants/{segment(credential)}"
    return path, f"{credential} to {agent}"


add_list(
    grants,
    "credential-grants",
    GRANT,
    COLUMNS,
    "List which agents may be lent which credentials, and which ask for it.",
)
add_decisions(
    grants,
    ("agent", "credential"),
    _find,
    {
        "approve": "Let an AGENT be lent a CREDENTIAL for the hosts and tools that its files name now.",
        "deny": "Refuse an AGENT the CREDENTIAL that it asks for.",
        "revoke": "Take a CREDENTIAL back from an AGENT; its next events wait.",
    },
)
