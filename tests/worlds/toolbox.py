"""Helpers that open a toolbox over a scripted control plane and, for its requests, a scripted web server."""

from __future__ import annotations

import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import h11
import msgspec
import trio

from sexton_http.wire.tls import Tls
from sexton_runner.client import ControlPlane, Outage, open_http
from sexton_runner.egress_settings import EgressSettings
from sexton_runner.frame_sender import FrameSender
from sexton_runner.lease import LiveLease
from sexton_runner.redact import Redactor
from sexton_runner.run import Run
from sexton_runner.run_network import open_network
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.probe import make_sandbox
from sexton_runner.server_network import open_server_network
from sexton_runner.settings import SandboxTier
from sexton_runner.timing import Timing
from sexton_runner.tool_settings import ToolSettings
from sexton_runner.tools.toolbox import Toolbox, open_toolbox
from sexton_runner.wire import Lease
from tests.fakes.control_plane import TOKEN, Plane, make_lease, open_plane
from tests.worlds.runner import PACE

LIMITS = Limits(wall_s=30.0, memory_bytes=256 << 20, pids=48)
DEFAULT_EGRESS = EgressSettings()
ALL_TOOLS = [
    "shell", "python", "http_request", "read_file", "memory_store", "memory_recall", "request_integration",
    "request_approval", "propose_improvement", "schedule_follow_up",
]  # fmt: skip


@dataclass(frozen=True)
class Bench:
    """An open toolbox and what it talks to."""

    box: Toolbox
    plane: Plane
    run: Run

    async def call(self, name: str, **arguments: Any) -> str:
        """Call a tool and give what the model reads of a call that went well."""
        result = await self.box.call(name, arguments, f"call_{random.random()}")
        assert result.ok, result.content
        return result.content


@asynccontextmanager
async def open_bench(
    folder: Path,
    *,
    policy: dict[str, Any] | None = None,
    checkpoint: object = None,
    timing: Timing = PACE,
    settings: ToolSettings | None = None,
    event: dict[str, Any] | None = None,
    tier: SandboxTier = SandboxTier.BUBBLEWRAP,
    egress: EgressSettings = DEFAULT_EGRESS,
) -> AsyncIterator[Bench]:
    """Open a toolbox for a lease with ``policy``."""
    given = {"tools": ALL_TOOLS} | (policy or {})
    wire = make_lease("Do it.", policy=given, checkpoint=checkpoint, event=event or {})
    lease = msgspec.convert(wire, Lease)
    live = LiveLease(lease, trio.current_time, 30.0)
    async with open_plane() as plane, open_http(plane.base_url, TOKEN, 5.0) as http:
        plane.leases[lease.lease_id] = "live"
        client = ControlPlane(http, Outage(trio.current_time))
        sender = FrameSender(live, client, timing, random.Random(1))
        run = Run(
            live=live,
            plane=client,
            sandbox=make_sandbox(tier, LIMITS, folder),
            timing=timing,
            rng=random.Random(1),
            clock=trio.current_time,
            redactor=Redactor(lease.policy.secrets_map, lease.policy.api_key),
            show=sender.put,
            shown=sender.flush,
            folder=folder / "run",
            tools=settings or ToolSettings(allow_loopback=True),
        )
        live.usage.go()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.run)
            run.folder.mkdir(parents=True, exist_ok=True)
            async with (
                open_network(lease.policy, egress, run.redactor, sender.put) as network,
                open_server_network(
                    lease.policy.mcp_servers, egress, run.redactor, sender.put, run.folder
                ) as servers,
            ):
                run = replace(run, network=network, servers=servers)
                async with open_toolbox(run) as box:
                    yield Bench(box, plane, run)
            await sender.flush()
            nursery.cancel_scope.cancel()


@dataclass
class Seen:
    """One request as the web server got it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Responder = Callable[[Seen], tuple[int, dict[str, str], bytes]]


@dataclass
class Web:
    """A web server on loopback; ``respond`` decides each answer, and ``seen`` is the record."""

    port: int
    respond: Responder
    seen: list[Seen] = field(default_factory=list)
    stall: bool = False
    scheme: str = "http"

    @property
    def url(self) -> str:
        """Give the address by name."""
        return f"{self.scheme}://localhost:{self.port}"


def echo(seen: Seen) -> tuple[int, dict[str, str], bytes]:
    """Give back all that was sent: the worst server for whoever put a secret in."""
    lines = [f"{seen.method} {seen.target}", *(f"{name}: {value}" for name, value in seen.headers.items())]
    return 200, {"content-type": "text/plain"}, "\n".join(lines).encode() + b"\n\n" + seen.body


async def serve_once(web: Web, stream: trio.abc.Stream) -> None:
    """Answer one request, and close the connection."""
    connection = h11.Connection(h11.SERVER)
    body, head = b"", None
    try:
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                connection.receive_data(bytes(await stream.receive_some(65536)))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            else:
                return
        assert head is not None
        headers = {name.decode(): value.decode() for name, value in head.headers}
        seen = Seen(head.method.decode(), head.target.decode(), headers, body)
        web.seen.append(seen)
        if web.stall:
            await trio.sleep_forever()
        status, more, content = web.respond(seen)
        lines = [*more.items(), ("content-length", str(len(content))), ("connection", "close")]
        sent = connection.send(h11.Response(status_code=status, headers=lines)) or b""
        if seen.method != "HEAD":
            sent += connection.send(h11.Data(data=content)) or b""
        await stream.send_all(sent)
    except (trio.BrokenResourceError, h11.ProtocolError):
        pass  # The client has gone; the test sees what it made of it.
    finally:
        await trio.aclose_forcefully(stream)


@asynccontextmanager
async def open_web(respond: Responder = echo, tls: Tls | None = None) -> AsyncIterator[Web]:
    """Serve on a free port of loopback, with ``tls`` over https."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    web = Web(listeners[0].socket.getsockname()[1], respond)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if tls is not None:
        context.load_cert_chain(tls.certificate, tls.key)
        web.scheme = "https"

    async def serve(stream: trio.SocketStream) -> None:
        safe = stream if tls is None else trio.SSLStream(stream, context, server_side=True)
        await serve_once(web, safe)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield web
        nursery.cancel_scope.cancel()
