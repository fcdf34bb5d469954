"""Opens the way to the MCP servers that a run's workspace declares: a proxy, which holds their secrets."""

import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import trio

from sexton_runner import frames
from sexton_runner.egress.policy import Binding, Bounds, Policy, Rule
from sexton_runner.egress.proxy import open_proxy
from sexton_runner.egress.seen import Seen, Verdict
from sexton_runner.egress_settings import EgressSettings
from sexton_runner.frames import Frame
from sexton_runner.network import ServerNetwork, filled
from sexton_runner.redact import Redactor
from sexton_runner.run_network import PLACEHOLDER, PLACEHOLDER_BYTES, told
from sexton_runner.wire import DeclaredServer

METHODS = ("GET", "POST", "DELETE")
"""What streamable HTTP asks with."""
PORTS = {"http": 80, "https": 443}
DOOR = "mcp.sock"
BACKLOG = 64


@asynccontextmanager
async def open_server_network(
    servers: Sequence[DeclaredServer],
    settings: EgressSettings,
    redactor: Redactor,
    show: Callable[[Frame], None],
    folder: Path,
) -> AsyncIterator[ServerNetwork | None]:
    """Open what leads to those servers that have an address; None where there is none.

    It is apart from the network of the run's programs: they can neither reach these servers by it, nor use
    their placeholders. ``folder`` is private to the run; the proxy's socket stands there.
    """
    remote = [server for server in servers if server.url]
    if not remote:
        yield None
        return
    placeholders = {server.name: _placeholders(server.secrets) for server in remote}
    network = ServerNetwork(
        headers={
            server.name: {
                name: filled(value, placeholders[server.name]) for name, value in server.headers.items()
            }
            for server in remote
        }
    )

    def observe(seen: Seen) -> None:
        if seen.verdict is not Verdict.ALLOWED:
            network.refusals[seen.host] = seen.why
        show(frames.connection(redactor.json(told(seen))))

    policy = Policy(
        rules=tuple(_rule(server) for server in remote),
        bindings=tuple(one for server in remote for one in _bindings(server, placeholders[server.name])),
        private_hosts=settings.private_hosts,
        bounds=Bounds(**settings.bounds),
    )
    directory = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Reached by the descriptor: the path of the folder may be longer than a socket's name may be.
        network.socket = f"/proc/self/fd/{directory}/{DOOR}"
        door = trio.socket.socket(trio.socket.AF_UNIX)
        await door.bind(network.socket)
        door.listen(BACKLOG)
        async with open_proxy(
            policy,
            trio.SocketListener(door),
            observe=observe,
            ask=None,
            redactor=redactor,
            extra_roots=settings.ca_bundle,
        ) as proxy:
            network.certificates = proxy.ca_pem
            yield network
    finally:
        os.close(directory)


def _placeholders(values: Mapping[str, str]) -> dict[str, str]:
    return {place: PLACEHOLDER + secrets.token_hex(PLACEHOLDER_BYTES) for place in values}


def _host_and_port(url: str) -> tuple[str, int]:
    address = urlsplit(url)
    return address.hostname or "", address.port or PORTS[address.scheme]


def _rule(server: DeclaredServer) -> Rule:
    host, port = _host_and_port(server.url)
    return Rule(host=host, ports=(port,), methods=METHODS, paths=(urlsplit(server.url).path or "/",))


def _bindings(server: DeclaredServer, placeholders: Mapping[str, str]) -> Iterator[Binding]:
    host, _ = _host_and_port(server.url)
    for header, value in server.headers.items():
        for place, placeholder in placeholders.items():
            if f"${{secrets.{place}}}" in value:
                yield Binding(
                    name=f"{server.name} {place}",
                    placeholder=placeholder,
                    secret=server.secrets[place],
                    hosts=(host,),
                    field=header,
                )
