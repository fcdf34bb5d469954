"""Opens the network of one run: its proxy, the placeholders of its secrets, and what they are told of it."""

import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from errno import EMFILE, ENFILE, ENOBUFS, ENOMEM
from typing import Any

import msgspec
import trio

from sexton_runner import frames
from sexton_runner.egress.policy import Binding, Bounds, Place, Policy, Rule, judge_request
from sexton_runner.egress.proxy import open_proxy
from sexton_runner.egress.records import Roots
from sexton_runner.egress.seen import Answer, Asked, Seen
from sexton_runner.egress_settings import EgressSettings
from sexton_runner.frames import Frame
from sexton_runner.network import Network, filled
from sexton_runner.redact import Redactor
from sexton_runner.rules import read_gates
from sexton_runner.tools.request_gate import may_gate_requests
from sexton_runner.wire import Policy as LeasePolicy, SecretUse

PLACEHOLDER = "sxt_"
PLACEHOLDER_BYTES = 16
FULL = frozenset({EMFILE, ENFILE, ENOBUFS, ENOMEM})
FULL_S = 0.1
USUAL_PORTS = (80, 443)
MAX_TEXT_CHARS = 512
_USUAL_USES = (SecretUse("header", "authorization"), SecretUse("basic"))


@asynccontextmanager
async def open_network(
    policy: LeasePolicy, settings: EgressSettings, redactor: Redactor, show: Callable[[Frame], None]
) -> AsyncIterator[Network | None]:
    """Open what the lease's policy allows; None for an agent that may reach no host."""
    if not policy.hosts:
        yield None
        return
    placeholders = make_placeholders(policy.secrets_map)
    rules = proxy_policy(policy, settings, placeholders)
    doors = _Doors()
    network = Network(
        certificates=b"",
        serve=doors.serve,
        authorities=Roots(settings.ca_bundle).context,
        private_hosts=settings.private_hosts,
        variables=variables(policy.env, placeholders),
        placeholders=placeholders,
        limits=_limits(policy),
    )

    def observe(seen: Seen) -> None:
        show(frames.connection(redactor.json(told(seen))))

    async def ask(asked: Asked) -> Answer:
        if network.judge is None:
            return Answer(allowed=False, why="the run is not ready to be asked")
        why = await network.judge(asked.method, asked.host, asked.port, asked.path, asked.body_sha256)
        return Answer(allowed=why is None, why=why or "")

    async with open_proxy(
        rules, doors, observe=observe, ask=ask, redactor=redactor, extra_roots=settings.ca_bundle
    ) as proxy:
        network.certificates = settings.roots() + b"\n" + proxy.ca_pem
        yield network


def make_placeholders(secrets_map: Mapping[str, Any]) -> dict[str, str]:
    r"""Give each secret that can stand in a request a placeholder, by ``NAME.FIELD``.

    >>> list(make_placeholders({"hub": {"token": "t0p", "key": "two\nlines", "deep": {"a": "b"}}}))
    ['hub.token']
    """
    return {
        f"{name}.{field}": PLACEHOLDER + secrets.token_hex(PLACEHOLDER_BYTES)
        for name, data in secrets_map.items()
        if isinstance(data, Mapping)
        for field, value in data.items()
        if _is_sendable(value)
    }


def _is_sendable(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).isprintable()


def variables(env: Mapping[str, str], placeholders: Mapping[str, str]) -> dict[str, str]:
    """Give the variables of the run's programs: each placeholder under its name, and the author's own.

    >>> variables({"A": "x ${secrets.hub.token}"}, {"hub.token": "sxt_1", "my-db.pass": "sxt_2"})["A"]
    'x sxt_1'
    """
    known: dict[str, str] = {}
    for place, placeholder in placeholders.items():
        name, _, _ = place.partition(".")
        known[_variable(place)] = placeholder
        if sum(other.startswith(f"{name}.") for other in placeholders) == 1:
            known[_variable(name)] = placeholder
    return {**known, **{name: filled(text, placeholders) for name, text in env.items()}}


def _variable(place: str) -> str:
    return "SEXTON_SECRET_" + re.sub("[^A-Z0-9]", "_", place.upper())


def proxy_policy(policy: LeasePolicy, settings: EgressSettings, placeholders: Mapping[str, str]) -> Policy:
    """Give what the proxy is to let through, and what it is to put in."""
    return Policy(
        rules=tuple(_rules(policy)),
        bindings=tuple(_bindings(policy, placeholders)),
        private_hosts=settings.private_hosts,
        inspects=_inspects(policy),
        bounds=Bounds(**settings.bounds),
    )


def _rules(policy: LeasePolicy) -> list[Rule]:
    whole = [Rule(host=host) for host in policy.network_policy.allow]
    return whole + [
        Rule(host=one.host, ports=one.ports or USUAL_PORTS, methods=one.methods, paths=one.paths)
        for one in policy.network_policy.rules
    ]


def _bindings(policy: LeasePolicy, placeholders: Mapping[str, str]) -> Iterator[Binding]:
    sole = policy.hosts if len(policy.hosts) == 1 else ()
    for place, placeholder in placeholders.items():
        name, _, field = place.partition(".")
        hosts = tuple(policy.secret_hosts.get(name) or sole)
        for use in policy.secret_uses.get(name) or _USUAL_USES:
            if hosts and use.place in list(Place):
                yield Binding(
                    name=place,
                    placeholder=placeholder,
                    secret=str(policy.secrets_map[name][field]),
                    hosts=hosts,
                    place=Place(use.place),
                    field=use.name or "authorization",
                )


def _inspects(policy: LeasePolicy) -> bool:
    try:
        return may_gate_requests(read_gates(policy.gates).rules)
    except msgspec.ValidationError:
        return True  # The runtime ends the run for it; until then nothing goes out.


def _limits(policy: LeasePolicy) -> Callable[[str, str, int, str], str | None]:
    """What ``http_request`` is told of hosts that are allowed in part, by the proxy's own rule."""
    rules = Policy(rules=tuple(_rules(policy)))

    def refusal(method: str, host: str, port: int, path: str) -> str | None:
        found = judge_request(rules, host.lower().rstrip("."), port, method, path)
        return None if found is None else found.why

    return refusal


def told(seen: Seen) -> dict[str, Any]:
    """Give the facts of a frame: what went where, and why not; nothing of a query, a header or a body.

    >>> from sexton_runner.egress.seen import Verdict
    >>> told(Seen(host="a.org", port=443, verdict=Verdict.ALLOWED, seconds=0.5))["ms"]
    500
    """
    return {
        "host": seen.host[:MAX_TEXT_CHARS],
        "port": seen.port,
        "method": seen.method[:MAX_TEXT_CHARS],
        "path": seen.path[:MAX_TEXT_CHARS],
        "address": seen.address,
        "verdict": seen.verdict.value,
        "reason": seen.reason.value,
        "why": seen.why[:MAX_TEXT_CHARS],
        "bytes_in": seen.bytes_in,
        "bytes_out": seen.bytes_out,
        "ms": int(seen.seconds * 1000),
        "count": seen.count,
    }


class _Doors(trio.abc.Listener[trio.SocketStream]):
    """All ports of one run's sandboxes as one listener: so the run has one proxy, and one set of bounds."""

    def __init__(self) -> None:
        self._in, self._out = trio.open_memory_channel[trio.SocketStream](0)

    async def serve(self, listener: trio.SocketListener) -> None:
        """Take in whoever comes to this port, until cancelled."""
        async with listener:
            while True:
                try:
                    stream = await listener.accept()
                except OSError as fault:
                    if fault.errno not in FULL:
                        return
                    await trio.sleep(FULL_S)
                else:
                    await self._in.send(stream)

    async def accept(self) -> trio.SocketStream:
        """Give the next of them, of whichever port."""
        try:
            return await self._out.receive()
        except trio.EndOfChannel as end:
            raise trio.ClosedResourceError from end

    async def aclose(self) -> None:
        """Take in nobody any more."""
        self._in.close()
        self._out.close()
        await trio.lowlevel.checkpoint()
