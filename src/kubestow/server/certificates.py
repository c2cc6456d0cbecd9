"""Self-signed certificates, used if none is configured: for localhost and the serving address, valid for a year."""

import ipaddress
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PAIR_NAME = "kube-scheduler"
_LIFETIME = timedelta(days=365)
_USAGES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


class Pair(NamedTuple):
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


def self_signed(hosts: list[str], now: datetime | None = None) -> Pair:
    """Create a certificate for host names and addresses."""
    now = now or datetime.now(UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{hosts[0]}@{int(now.timestamp())}")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(alternative_names(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(key_usage("digital_signature", "key_encipherment", "key_cert_sign"), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return pair_of(certificate, key)


def pair_of(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    """Return a certificate and its key as PEM."""
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def key_usage(*names: str) -> x509.KeyUsage:
    """Return the extension that permits only these uses of a key."""
    return x509.KeyUsage(**{name: name in names for name in _USAGES})


def alternative_names(hosts: Iterable[str]) -> x509.SubjectAlternativeName:
    """Return the extension with the host names and addresses of a server."""
    return x509.SubjectAlternativeName([_general_name(host) for host in dict.fromkeys(hosts)])


def ensure_in(folder: Path, hosts: list[str]) -> tuple[str, str]:
    """Return the paths of certificate and key in a folder; create them unless both exist. Raises OSError."""
    certificate, key = folder / f"{PAIR_NAME}.crt", folder / f"{PAIR_NAME}.key"
    if not (certificate.exists() and key.exists()):
        pair = self_signed(hosts)
        folder.mkdir(parents=True, exist_ok=True)
        key.unlink(missing_ok=True)
        with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pair.key)
        certificate.write_bytes(pair.certificate)
    return str(certificate), str(key)


def names_in(pem: bytes) -> tuple[str, ...]:
    """Return the host names and addresses of a certificate."""
    certificate = x509.load_pem_x509_certificate(pem)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return tuple(str(name.value) for name in common)
    addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
    return (*names.get_values_for_type(x509.DNSName), *addresses)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
