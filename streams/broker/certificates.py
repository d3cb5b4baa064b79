"""Certificates of the secure embedded broker: a private authority, one server, one client.

They are valid for the loopback addresses of one data folder and for nothing else. The authority's
key is discarded after signing.
"""

import ipaddress
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLIENT_NAME = "hb"
BROKER_NAME = "hb-broker"
_LIFE = timedelta(days=3650)
_Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class SecretFiles:
    """The credentials of a secure embedded broker."""

    folder: Path

    @property
    def authority(self) -> Path:
        """The certificate that signs the others; clients trust it."""
        return self.folder / "ca.pem"

    @property
    def server(self) -> Path:
        """The brokers' key and certificate in one file, as Kafka reads them."""
        return self.folder / "server.pem"

    @property
    def client_certificate(self) -> Path:
        """A client's certificate."""
        return self.folder / "client.pem"

    @property
    def client_key(self) -> Path:
        """The key of the client's certificate."""
        return self.folder / "client.key"

    def password(self, user: str) -> Path:
        """The password of `user`."""
        return self.folder / f"{user}.password"

    def make(self, users: tuple[str, ...]) -> None:
        """Write all files, readable by this user only, unless they exist."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for user in users:
            if not self.password(user).exists():
                _write(self.password(user), secrets.token_urlsafe(24).encode())
        if not self.server.exists():
            self._make_certificates()

    def _make_certificates(self) -> None:
        key, server_key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
        authority = _certificate("hb embedded broker", key, None)
        server = _certificate(BROKER_NAME, server_key, (authority, key))
        client = _certificate(CLIENT_NAME, client_key, (authority, key))
        _write(self.authority, _pem(authority))
        _write(self.client_key, _key_pem(client_key))
        _write(self.client_certificate, _pem(client))
        # Written last: its presence means that the set is complete.
        _write(self.server, _key_pem(server_key) + _pem(server) + _pem(authority))


def _certificate(
    name: str, key: _Key, issuer: tuple[x509.Certificate, _Key] | None
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks differ
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(_usage(signs=issuer is None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer is None:
        return builder.sign(key, hashes.SHA256())
    public = issuer[1].public_key()
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(public)
    builder = builder.add_extension(identifier, critical=False)
    return _for_loopback(builder).sign(issuer[1], hashes.SHA256())


def _for_loopback(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    # Brokers are clients of each other, so both purposes.
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    names = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
    ]
    return builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False).add_extension(
        x509.SubjectAlternativeName(names), critical=False
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: _Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(file: Path, content: bytes) -> None:
    """Write a file atomically, without it ever being readable by others."""
    fresh = file.with_name(file.name + ".new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_bytes(content)
    fresh.replace(file)
