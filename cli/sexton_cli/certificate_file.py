"""Keeps in the data folder the certificate that its server shows, for other commands on the machine."""

from pathlib import Path

from sexton_runner.trust import first_certificate

CERTIFICATE_FILE = "certificate.pem"


def keep_certificate(data: Path, certificate: Path | None, addresses: tuple[str, ...]) -> Path | None:
    """Keep what the server shows now at its own addresses; None: it shows none.

    Its file may be renewed while it serves, and a proxy before it shows another.
    """
    path = data / CERTIFICATE_FILE
    if certificate is None:
        path.unlink(missing_ok=True)
        return None
    path.write_text(f"{' '.join(addresses)}\n{first_certificate(certificate)}\n", encoding="ascii")
    return path


def kept_certificate(data: Path, base_url: str) -> Path | None:
    """What the server of this folder shows at this address; None where an authority has to vouch for it."""
    path = data / CERTIFICATE_FILE
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            return path if base_url in file.readline().split() else None
    except OSError:
        return None
