"""The certificate authority of one run, which lives in memory only."""

import datetime as dt
import ipaddress
import os
import ssl
from collections import OrderedDict

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sexton_runner.egress.hosts import is_address

LIFE = dt.timedelta(hours=24)
"""Twice the longest run."""
SKEW = dt.timedelta(hours=1)
MAX_HOSTS = 256
MAX_COMMON_NAME_CHARS = 64


class RunAuthority:
    """Vouches for hosts towards the programs of one run."""

    def __init__(self, now: dt.datetime, name: str = "Sexton egress of one run") -> None:
        self._begin, self._end = now - SKEW, now + LIFE
        self._key = ec.generate_private_key(ec.SECP256R1())
        # One key for all hosts: whoever has it has the proxy's memory, and with it the others.
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()

    def __repr__(self) -> str:
        return f"<RunAuthority for {len(self._contexts)} hosts>"

    @property
    def ca_pem(self) -> bytes:
        """The certificate that programs are to trust."""
        return self._certificate.public_bytes(Encoding.PEM)

    def context_for(self, host: str) -> ssl.SSLContext:
        """Give what a server of this host shows; HTTP/1.1 is all that it speaks."""
        context = self._contexts.pop(host, None)
        if context is None:
            context = self._make_context(host)
        self._contexts[host] = context
        while len(self._contexts) > MAX_HOSTS:
            self._contexts.popitem(last=False)
        return context

    def _make_context(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        context.options |= ssl.OP_NO_RENEGOTIATION
        key = self._leaf_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        # Python's ssl reads files only; this one is never on a disk.
        file = os.memfd_create("leaf")
        try:
            os.write(file, key + self._leaf(host).public_bytes(Encoding.PEM))
            context.load_cert_chain(f"/proc/self/fd/{file}")
        finally:
            os.close(file)
        return context

    def _leaf(self, host: str) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:MAX_COMMON_NAME_CHARS])])
        spelled: x509.GeneralName = (
            x509.IPAddress(ipaddress.ip_address(host)) if is_address(host) else x509.DNSName(host)
        )
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            self._builder(name, self._leaf_key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([spelled]), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._begin)
            .not_valid_after(self._end)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
