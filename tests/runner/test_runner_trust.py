"""Whose certificate a runner trusts, tried by handshakes in memory."""

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from sexton_runner.trust import first_certificate, pinned, untrusted


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def issue(
    subject: str, key: ec.EllipticCurvePrivateKey, issuer: str, signer: ec.EllipticCurvePrivateKey
) -> bytes:
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(named(subject))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=subject == issuer, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM)


@pytest.fixture
def served(tmp_path: Path) -> dict[str, Path]:
    """Two servers of one authority, each with a file that holds its chain and its key."""
    authority = ec.generate_private_key(ec.SECP256R1())
    root = issue("authority", authority, "authority", authority)
    files = {}
    for name in ("ours", "other"):
        key = ec.generate_private_key(ec.SECP256R1())
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        files[name] = tmp_path / f"{name}.pem"
        files[name].write_bytes(issue(name, key, "authority", authority) + root + private)
    return files


def shake_hands(client: ssl.SSLContext, served: Path) -> None:
    """Raises what the client makes of the server's certificate."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(served)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(back, there, server_hostname="127.0.0.1"),
        server.wrap_bio(there, back, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue


def test_a_pinned_certificate_is_trusted_without_its_authority_and_whatever_its_name(
    served: dict[str, Path],
) -> None:
    shake_hands(pinned(served["ours"]), served["ours"])


def test_another_certificate_of_the_same_authority_is_not(served: dict[str, Path]) -> None:
    with pytest.raises(ssl.SSLCertVerificationError) as caught:
        shake_hands(pinned(served["ours"]), served["other"])

    assert untrusted(caught.value) == "self-signed certificate in certificate chain"
    assert untrusted(OSError("another fault")) is None


def test_of_a_chain_only_the_servers_own_certificate_counts(served: dict[str, Path], tmp_path: Path) -> None:
    assert first_certificate(served["ours"]).count("BEGIN CERTIFICATE") == 1

    (tmp_path / "empty.pem").write_text("no certificate")
    with pytest.raises(ValueError, match=r"empty\.pem holds no certificate"):
        pinned(tmp_path / "empty.pem")
