"""Decides which certificates the runner trusts for the control plane."""

import hashlib
import os
import re
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
HTTPS: Final = 443
LOOK_S: Final = 5.0
WAY_OUT: Final = (
    "let SSL_CERT_FILE name the certificate of its authority, or give the server's own with --server-cert"
)


def trust_for(base_url: str, server_cert: Path | None) -> ssl.SSLContext | bool:
    """What a client of this address is to trust; it counts on loopback too, where proxies do not.

    Raises OSError and ValueError when a file cannot be read or holds no certificate.
    """
    if not base_url.startswith("https:"):
        # Nothing is encrypted on this way, and to read all authorities takes each run 50 ms.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if server_cert is not None:
        return pinned(server_cert)
    return httpx2.create_ssl_context()


def pinned(certificate: Path) -> ssl.SSLContext:
    """Trust the server that shows the first certificate of this file, and no other.

    Who holds its key is the one who is meant, so its names are not looked at: a runner beside the server
    reaches it under an address that no certificate bears.
    """
    context = _Pinned(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.file = certificate
    context.take_up()
    return context


class _Pinned(ssl.SSLContext):
    """Also trusts what the file holds later: a server takes a renewed certificate up while it runs."""

    file: Path
    _read: str = ""

    def take_up(self) -> None:
        """Raises OSError and ValueError."""
        found = first_certificate(self.file)
        if found != self._read:
            self.load_verify_locations(cadata=found)
            self._read = found

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        # Once a connection. A file that is being written is read by the next one.
        with suppress(OSError, ValueError):
            self.take_up()
        return super().wrap_bio(*args, **options)


def first_certificate(file: Path) -> str:
    """The server's own in a file with a chain, as PEM. Raises OSError and ValueError."""
    found = _PEM.search(file.read_text(encoding="ascii", errors="replace"))
    if found is None:
        raise ValueError(f"{file} holds no certificate in PEM")
    return found[0]


def fingerprint_of(base_url: str) -> str | None:
    """SHA-256 of the certificate that is shown at this address, as ``openssl x509 -fingerprint`` writes it.

    None where none is shown. Nothing is believed of it.
    """
    parts = urlsplit(base_url)
    try:
        pem = ssl.get_server_certificate((parts.hostname or "", parts.port or HTTPS), timeout=LOOK_S)
    except (OSError, ValueError):
        return None
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest().hex(":").upper()


def untrusted(fault: BaseException | None) -> str | None:
    """Why a certificate does not count, if that caused the fault, however far down; else None."""
    while fault is not None:
        if isinstance(fault, ssl.SSLCertVerificationError):
            return fault.verify_message.rstrip(".") or str(fault)
        fault = fault.__cause__ or fault.__context__
    return None


def said_of_trust() -> str:
    """Which file has been trusted instead of the system's, if one was named."""
    named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    return f" (trusted: {named})" if named else ""
