"""The server's own certificate authority, its certificate, and that of the administrator.

They are PEM files in a folder, with keys readable only by the owner, and are created when they are missing.
"""

import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubestow.apiserver.files import private_folder, replace_file
from kubestow.server.certificates import alternative_names, key_usage, pair_of

_LIFETIME = timedelta(days=3650)
_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of the PEM files."""

    ca: Path
    server: Path
    server_key: Path
    admin: Path
    admin_key: Path

    def server_context(self) -> ssl.SSLContext:
        """Return the TLS context of the server; client certificates of this authority are optional."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.ca))
        context.load_cert_chain(self.server, self.server_key)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        return context


def ensure(folder: Path, addresses: tuple[str, ...]) -> Certificates:
    """Return the certificates in a folder; create missing ones, and that of the server if it lacks an address."""
    private_folder(folder)
    files = Certificates(
        folder / "ca.crt", folder / "server.crt", folder / "server.key", folder / "admin.crt", folder / "admin.key"
    )
    ca_key_file = folder / "ca.key"
    if not (files.ca.exists() and ca_key_file.exists()):
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubestow-ca")])
        certificate = _sign(name, key, name, key, authority=True)
        _write(files.ca, ca_key_file, certificate, key)
        for stale in (files.server, files.admin):
            stale.unlink(missing_ok=True)
    ca_key = serialization.load_pem_private_key(ca_key_file.read_bytes(), None)
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
    ca = x509.load_pem_x509_certificate(files.ca.read_bytes())
    hosts = (*_NAMES, socket.gethostname(), "127.0.0.1", "::1", *addresses)
    if not _covers(files.server, hosts):
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubestow-apiserver")])
        _write(files.server, files.server_key, _sign(name, key, ca.subject, ca_key, hosts=hosts), key)
    if not files.admin.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = client_certificate(ca, ca_key, key, "kubernetes-admin", ("system:masters",))
        _write(files.admin, files.admin_key, certificate, key)
    return files


def client_certificate(
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    key: ec.EllipticCurvePrivateKey,
    user: str,
    groups: tuple[str, ...],
) -> x509.Certificate:
    """Return a client certificate for a user."""
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    name = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    return _sign(name, key, ca.subject, ca_key)


def _covers(file: Path, hosts: tuple[str, ...]) -> bool:
    if not file.exists():
        return False
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    known = {str(name.value) for name in names}
    return known.issuperset(hosts)


def _sign(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    authority: bool = False,
    hosts: tuple[str, ...] = (),
) -> x509.Certificate:
    now, usages = datetime.now(UTC), ("digital_signature", *(("key_cert_sign", "crl_sign") if authority else ()))
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(key_usage(*usages), critical=True)
    )
    if not authority:
        usage = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    if hosts:
        builder = builder.add_extension(alternative_names(hosts), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _write(file: Path, key_file: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    pair = pair_of(certificate, key)
    replace_file(key_file, pair.key)
    replace_file(file, pair.certificate, 0o644)
