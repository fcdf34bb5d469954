"""Finds out what an operator has added for runners: addresses of providers, and MCP servers."""

from collections.abc import Mapping

from sexton_actors.manifest.known_names import Surroundings
from sexton_runner.errors import BadSettings
from sexton_runner.providers.addresses import read_addresses
from sexton_runner.tool_settings import MCP_VARIABLE, read_tool_settings


def surroundings(environment: Mapping[str, str]) -> Surroundings:
    """Read the variables that runners read; ``sexton up`` hands its own on to its runners.

    A file of servers that cannot be read counts as none that is known: the runner itself complains of it.

    >>> surroundings({"SEXTON_MY_LAB_BASE_URL": "http://lab/v1"}).providers
    frozenset({'my-lab'})
    """
    try:
        servers = read_tool_settings(environment).mcp_servers if environment.get(MCP_VARIABLE) else None
    except BadSettings:
        servers = None
    return Surroundings(
        frozenset(read_addresses(environment)), None if servers is None else frozenset(servers)
    )
