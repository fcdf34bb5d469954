"""TLS: its files, its settings, and a transport over it."""

import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import trio

from sexton_http.wire import timeouts
from sexton_http.wire.transport import Ends, ends_of, receive_raw, send_while_taken, write_now

PIECE_BYTES: Final = 64 * 1024
"""At most this much is encrypted at once: a buffer of OpenSSL never shrinks again."""
CIPHERS: Final = "ECDHE+AESGCM"
"""For TLS 1.2. HTTP/2 forbids those without forward secrecy or authentication of what they encrypt."""
HTTP1: Final = "http/1.1"
HTTP2: Final = "h2"
"""Names of ALPN."""


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files; with TLS, HTTP/2 is offered by ALPN."""

    certificate: Path
    key: Path

    def problem(self) -> str | None:
        """Why no server can show this certificate, in words that name the file; None when one can."""
        for file in (self.certificate, self.key):
            try:
                file.read_bytes()
            except OSError as fault:
                return f"{file}: {fault.strerror}"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # Without a password OpenSSL would ask for one at the terminal.
            context.load_cert_chain(self.certificate, self.key, password="")
        except (ssl.SSLError, ValueError) as fault:
            pair = f"{self.certificate} and {self.key}"
            return f"{pair} are no certificate and its key, without a password: {fault}"
        return None

    def context(self) -> ssl.SSLContext:
        """Settings that satisfy HTTP/2 (RFC 9113, 9.2). Raises OSError when the files cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(CIPHERS)
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols([HTTP2, HTTP1])
        context.load_cert_chain(self.certificate, self.key, password="")
        return context


class TlsTransport:
    """TLS over a socket: OpenSSL works in memory, and the bytes go the same way as without TLS.

    ``trio.SSLStream`` would do it too. It waits for a lock and a checkpoint with each write, where an answer
    that the kernel takes at once needs neither.
    """

    __slots__ = ("_incoming", "_outgoing", "_plain", "_sealed", "_socket", "_stream", "_tls", "_torn")

    secure: ClassVar[bool] = True
    piece_bytes: ClassVar[int] = PIECE_BYTES

    def __init__(self, stream: trio.SocketStream, context: ssl.SSLContext) -> None:
        self._stream = stream
        self._socket = stream.socket
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._plain = b""
        """What is still to be encrypted of a write that the kernel did not take at once."""
        self._sealed = b""
        """What is encrypted of it."""
        self._torn = False
        """Such a write is under way: nothing may come between its halves."""

    @property
    def descriptor(self) -> int:
        return self._socket.fileno()

    def ends(self) -> Ends:
        return ends_of(self._socket)

    async def handshake(self) -> str | None:
        """The protocol that both sides chose (ALPN), if any. Raises OSError or trio.BrokenResourceError."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._send_pending()
                data = await receive_raw(self._socket)
                if not data:
                    raise trio.BrokenResourceError("the client left in its handshake") from None
                self._incoming.write(data)
            except ssl.SSLError:
                self._alert()
                raise
            else:
                await self._send_pending()
                return self._tls.selected_alpn_protocol()

    async def receive(self) -> bytes:
        if self._incoming.pending:
            # What is here already comes without a wait: other connections have their turn before it.
            await trio.lowlevel.checkpoint()
        while True:
            try:
                # One record at a time. All of what came is decrypted before the socket is asked for more.
                return self._tls.read(PIECE_BYTES)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                self._alert()
                return b""
            data = await receive_raw(self._socket)
            if not data:
                # No `close_notify` is asked for: HTTP says itself where a request ends, so nothing can be cut
                # off unnoticed.
                return b""
            self._incoming.write(data)

    def send_now(self, data: bytes) -> bool:
        if len(data) <= PIECE_BYTES:
            return self._seal_and_write(data)
        for start in range(0, len(data), PIECE_BYTES):
            if not self._seal_and_write(data[start : start + PIECE_BYTES]):
                self._plain = data[start + PIECE_BYTES :]
                return False
        return True

    def send_pieces_now(self, pieces: Sequence[bytes]) -> bool:
        for number, piece in enumerate(pieces, 1):
            if not self.send_now(piece):
                self._plain = b"".join((self._plain, *pieces[number:]))
                return False
        return True

    async def flush(self) -> None:
        sealed, self._sealed = self._sealed, b""
        plain, self._plain = self._plain, b""
        await send_while_taken(self._stream, sealed)
        for start in range(0, len(plain), PIECE_BYTES):
            self._tls.write(plain[start : start + PIECE_BYTES])
            with trio.fail_after(timeouts.WRITE_S):
                await self._send_pending()
        self._torn = False

    def finish(self) -> None:
        """Say ``close_notify``, then that no more bytes come."""
        with suppress(ssl.SSLError):  # The client has not said it yet, and nobody waits until it does.
            self._tls.unwrap()
        self._alert()
        self._socket.shutdown(trio.socket.SHUT_WR)

    async def discard(self) -> bool:
        return bool(await receive_raw(self._socket))  # Nobody will read it, so nobody decrypts it.

    async def close(self) -> None:
        await trio.aclose_forcefully(self._stream)

    def _seal_and_write(self, data: bytes) -> bool:
        self._tls.write(data)
        sealed = self._outgoing.read()
        taken = write_now(self._socket, sealed)
        if taken == len(sealed):
            return True
        self._sealed = sealed[taken:]
        self._torn = True
        return False

    async def _send_pending(self) -> None:
        sealed = self._outgoing.read()
        if sealed:
            await self._stream.send_all(sealed)

    def _alert(self) -> None:
        """Send the little that OpenSSL has to say at an end, if the kernel takes it; nobody waits for it."""
        if self._outgoing.pending and not self._torn:
            with suppress(OSError):
                write_now(self._socket, self._outgoing.read())


class Handshake:
    """The beginning of a connection over TLS, as far as its time is concerned."""

    __slots__ = ("_began", "_scope", "_transport")

    def __init__(self, transport: TlsTransport) -> None:
        self._transport = transport
        self._scope = trio.CancelScope()
        self._began = trio.current_time()

    async def run(self) -> str | None:
        """What is to be spoken, by its name in ALPN; None when there will be no connection."""
        with self._scope:
            try:
                return await self._transport.handshake() or HTTP1
            except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                return None  # Scanners and plain HTTP on this port are nothing to write a line about.
        return None

    def due(self) -> float:
        return self._began + timeouts.HANDSHAKE_S

    def idle_since(self) -> float:
        return self._began

    def cut(self) -> None:
        self._scope.cancel()

    def close_if_idle(self) -> None:
        self._scope.cancel()
