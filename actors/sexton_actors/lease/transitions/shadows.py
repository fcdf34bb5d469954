"""What a shadow run may not do, and what of its lease and its report is left out."""

from typing import Final

from msgspec.structs import replace

from sexton_actors.manifest.known_names import TOOLS
from sexton_actors.manifest.model import Manifest, WorkspaceKind
from sexton_actors.protocol.lease import Report
from sexton_actors.refusal import Refusal
from sexton_storage.records.leases import Lease

IN_SHADOW: Final = "UZ-SHADOW-001"


def may_take_effect(lease: Lease) -> Refusal | None:
    """None unless the lease is that of a shadow run."""
    if not lease.shadow:
        return None
    return Refusal(IN_SHADOW, "This is a shadow run: nothing that it asks for takes effect.")


def without_effects(manifest: Manifest) -> Manifest:
    """The files of a shadow run, as its runner is told them: nothing is reached, lent or left.

    Tools of MCP servers are left out, those of the runner too: what they do nobody here can know.
    """
    return replace(
        manifest,
        tools=tuple(tool for tool in manifest.tools if tool in TOOLS),
        network_allow=(),
        network_rules=(),
        credentials=(),
        integrations=(),
        mcp_servers=(),
        env={name: value for name, value in manifest.env.items() if "${secrets." not in value},
        workspace=WorkspaceKind.FRESH,
    )


def without_changes(message: Report) -> Report:
    """The report of a shadow run: it leaves no memory, proposes nothing, and nothing goes on from it."""
    return replace(message, memory=(), proposals=(), checkpoint=None)
