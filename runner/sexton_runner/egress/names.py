"""Looks the names of hosts up once a run, and connects to what was found then."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

import trio

from sexton_runner.egress.hosts import is_address
from sexton_runner.egress.policy import Policy
from sexton_runner.egress.refusals import Refusal, Refused
from sexton_runner.egress.seen import Reason, Verdict
from sexton_runner.tools.addresses import forbidden

MAX_NAMES = 1_024
MAX_TRIED_ADDRESSES = 3
CONNECT_S = 10.0
LOOK_UP_S = 10.0

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Gives the addresses of a name; raises ``OSError`` when there are none."""


async def look_up(host: str) -> Sequence[str]:
    """Ask the system's resolver."""
    found = await trio.socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(slots=True)
class _Pin:
    lock: trio.Lock = field(default_factory=trio.Lock)
    addresses: tuple[str, ...] = ()


class Names:
    """The addresses of one run: a name that was found stays where it was found."""

    def __init__(self, policy: Policy, resolve: Resolve = look_up) -> None:
        self._policy = policy
        self._resolve = resolve
        self._pins: dict[str, _Pin] = {}

    def __repr__(self) -> str:
        return f"<Names {len(self._pins)}>"

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Give the addresses of a host that a rule allows; raises ``Refused``.

        One closed address among several refuses the name.
        """
        found = (host,) if is_address(host) else await self._pinned(host)
        private = not self._policy.private_hosts.isdisjoint((host, f"{host}:{port}"))
        for address in found:
            if why := forbidden(address, allow_loopback=private, allow_private=private):
                raise Refused(
                    Refusal(
                        reason=Reason.ADDRESS,
                        why=f"the host {host} stands for {why}, which a run must not reach",
                        advice="Only the operator of the runner can allow it, by its name",
                    )
                )
        return found

    async def connect(self, host: str, port: int) -> tuple[trio.SocketStream, str]:
        """Connect to one of the pinned addresses; gives it, too. Raises ``Refused``."""
        missed = "no address"
        for address in (await self.addresses(host, port))[:MAX_TRIED_ADDRESSES]:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            sock = trio.socket.socket(family, socket.SOCK_STREAM)
            try:
                with trio.fail_after(CONNECT_S):
                    await sock.connect((address, port))
            except (OSError, trio.TooSlowError) as fault:
                sock.close()
                missed = "too slow" if isinstance(fault, trio.TooSlowError) else str(fault.strerror)
            except BaseException:
                sock.close()
                raise
            else:
                return trio.SocketStream(sock), address
        raise Refused(_not_reached(Reason.CONNECT, f"no connection to {host}:{port}: {missed}"))

    async def _pinned(self, host: str) -> tuple[str, ...]:
        if len(self._pins) >= MAX_NAMES and host not in self._pins:
            why = f"the run has looked up {MAX_NAMES} names, which is all it may"
            raise Refused(
                Refusal(
                    status=HTTPStatus.TOO_MANY_REQUESTS,
                    reason=Reason.NAME,
                    why=why,
                    advice="Reach fewer hosts in one run",
                    verdict=Verdict.BOUND,
                )
            )
        pin = self._pins.setdefault(host, _Pin())
        # Whoever comes meanwhile waits for the first answer: a second one could differ.
        async with pin.lock:
            if not pin.addresses:
                try:
                    with trio.fail_after(LOOK_UP_S):
                        pin.addresses = tuple(await self._resolve(host))
                except (OSError, UnicodeError, trio.TooSlowError) as fault:
                    raise Refused(_not_reached(Reason.NAME, f"the host {host} cannot be found")) from fault
                if not pin.addresses:
                    raise Refused(_not_reached(Reason.NAME, f"the host {host} cannot be found"))
        return pin.addresses


def _not_reached(reason: Reason, why: str) -> Refusal:
    return Refusal(
        status=HTTPStatus.BAD_GATEWAY,
        reason=reason,
        why=why,
        advice="Try again later, or check the name",
        verdict=Verdict.FAILED,
    )
