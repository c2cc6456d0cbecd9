"""Certificates for tests: an authority and the certificates it signs."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def _named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])


class Authority:
    def __init__(self, name: str = "test authority") -> None:
        self._name = _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *extensions: x509.ExtensionType,
        expired: bool = False,
    ) -> bytes:
        now = datetime.now(UTC) - timedelta(days=1 if expired else 0)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    @cached_property
    def pem(self) -> bytes:
        return self._sign(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))

    def issue(self, name: str, *hosts: str, expired: bool = False) -> tuple[bytes, bytes]:
        """Return a certificate and its key, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = []
        for host in hosts:
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(host)))
            except ValueError:
                names.append(x509.DNSName(host))
        extensions = [x509.SubjectAlternativeName(names)] if names else []
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return self._sign(_named(name), key, *extensions, expired=expired), private

    def server_context(self, folder: Path, *hosts: str, ask_clients: bool = False) -> ssl.SSLContext:
        """Return the context of a server with a certificate for these hosts."""
        certificate, key = self.issue("server", *hosts)
        both = folder / "server.pem"
        both.write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        if ask_clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self.pem.decode())
        return context


def certificates_in(pem: bytes) -> tuple[x509.Certificate, ...]:
    return tuple(x509.load_pem_x509_certificates(pem))
