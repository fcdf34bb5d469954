"""Stands in for the services that recipes talk to: one server on loopback, under each of their names."""

import datetime as dt
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.worlds.toolbox import Seen, Web, serve_once

Answer = tuple[int, dict[str, str], bytes]
Service = Callable[[Seen], Answer]
DAY = dt.timedelta(days=1)
USUAL_DAYS = 90


def as_json(document: Any, status: int = 200) -> Answer:
    return status, {"content-type": "application/json"}, json.dumps(document).encode()


def as_text(text: str, kind: str = "text/plain", status: int = 200) -> Answer:
    return status, {"content-type": kind}, text.encode()


NOT_FOUND = as_json({"message": "Not Found"}, 404)


@dataclass
class Authority:
    """Vouches for the services. ``days`` says by name how long a certificate lasts; below 0 it is over."""

    folder: Path
    days: Mapping[str, int]
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    contexts: dict[str, ssl.SSLContext] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of the stand-ins")])
        made = self._sign(self.name, self.key, 10, x509.BasicConstraints(ca=True, path_length=0))
        self.bundle = self.folder / "stand-ins.pem"
        self.bundle.write_bytes(made.public_bytes(Encoding.PEM))

    def context(self, name: str) -> ssl.SSLContext:
        """Give what a server of this name answers handshakes with."""
        if name not in self.contexts:
            key = ec.generate_private_key(ec.SECP256R1())
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
            names = x509.SubjectAlternativeName([x509.DNSName(name)])
            made = self._sign(subject, key, self.days.get(name, USUAL_DAYS), names)
            file = self.folder / f"{name}.pem"
            secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            file.write_bytes(secret + made.public_bytes(Encoding.PEM))
            context = self.contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(file)
        return self.contexts[name]

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: int, about: x509.ExtensionType
    ) -> x509.Certificate:
        # Half a day beside the borders, so that nobody has to count seconds.
        ends = dt.datetime.now(dt.UTC) + days * DAY + DAY / 2
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(ends - 400 * DAY)
            .not_valid_after(ends)
            .add_extension(about, critical=isinstance(about, x509.BasicConstraints))
            .sign(self.key, hashes.SHA256())
        )


@dataclass
class StandIns:
    """The services by host, and ``tls_port`` and ``plain_port``, at which all of them are.

    Several recipes talk to one host: ``HOST#AGENT`` is the service for those that call themselves so.
    """

    authority: Authority
    services: dict[str, Service] = field(default_factory=dict)
    seen: dict[str, list[Seen]] = field(default_factory=dict)
    tls_port: int = 0
    plain_port: int = 0

    def answer(self, seen: Seen) -> Answer:
        host = seen.headers["host"].partition(":")[0]
        by_agent = f"{host}#{seen.headers.get('user-agent')}"
        name = by_agent if by_agent in self.services else host
        self.seen.setdefault(name, []).append(seen)
        service = self.services.get(name)
        return NOT_FOUND if service is None else service(seen)

    async def serve_tls(self, stream: trio.SocketStream) -> None:
        def choose(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
            connection.context = self.authority.context(name or "nameless.example")

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = choose
        tls = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        try:
            await serve_once(Web(self.tls_port, self.answer), tls)
        except trio.BrokenResourceError:
            pass  # Who looked at the certificate only has gone.
        finally:
            await trio.aclose_forcefully(tls)

    async def serve_plain(self, stream: trio.SocketStream) -> None:
        await serve_once(Web(self.plain_port, self.answer), stream)


@asynccontextmanager
async def open_stand_ins(folder: Path, days: Mapping[str, int]) -> AsyncIterator[StandIns]:
    """Serve them on two free ports of loopback."""
    folder.mkdir()
    here = StandIns(Authority(folder, days))
    tls, plain = [(await trio.open_tcp_listeners(0, host="127.0.0.1"))[0] for _ in range(2)]
    here.tls_port, here.plain_port = tls.socket.getsockname()[1], plain.socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, here.serve_tls, [tls])
        nursery.start_soon(trio.serve_listeners, here.serve_plain, [plain])
        yield here
        nursery.cancel_scope.cancel()
