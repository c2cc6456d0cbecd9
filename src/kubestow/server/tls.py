"""TLS of the scheduler's server: the serving certificates, and the authorities of client certificates.

Changed files are read again, so that new connections use a rotated certificate.
"""

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubestow.client.tls import load_pem
from kubestow.server.certificates import ensure_in, names_in, self_signed
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
CURVES = {23: "prime256v1", 24: "secp384r1", 25: "secp521r1", 29: "X25519"}
"""Key exchange mechanisms by their numbers in TLS, which are also those of Go."""
_OPENSSL_NAMES = {"AES_128": "AES128", "AES_256": "AES256", "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305"}
_ALWAYS_ON = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""The suites of TLS 1.3, which cannot be chosen."""


class TlsError(Exception):
    """A TLS setting is invalid; the message names the flag."""


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The values of the TLS flags."""

    cert_file: str = ""
    key_file: str = ""
    cert_dir: str = ""
    sni: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    min_version: str = ""
    cipher_suites: tuple[str, ...] = ()
    curves: tuple[int, ...] = ()
    client_authorities: bytes = b""
    """The PEM of all authorities of client certificates."""


class ServerContexts:
    """The context of the listening socket; `refresh` reads changed files again."""

    def __init__(self, settings: ServerTls, hosts: list[str]) -> None:
        """Create the contexts. Raises TlsError if a setting is invalid."""
        self._settings = settings
        self._files: list[tuple[ssl.SSLContext, str, str, str]] = []
        self._seen: dict[str, tuple[int, int]] = {}
        self._by_name: dict[str, ssl.SSLContext] = {}
        self.context = self._default(hosts)
        for certificate, key, domains in settings.sni:
            context = self._with_files(certificate, key, "--tls-sni-cert-key")
            for domain in domains or names_in(Path(certificate).read_bytes()):
                self._by_name[domain.lower()] = context
        if self._by_name:
            self.context.sni_callback = self._select

    def _default(self, hosts: list[str]) -> ssl.SSLContext:
        settings = self._settings
        if bool(settings.cert_file) != bool(settings.key_file):
            raise TlsError("--tls-cert-file and --tls-private-key-file must be set together")
        if settings.cert_file:
            return self._with_files(settings.cert_file, settings.key_file, "--tls-cert-file")
        if settings.cert_dir:
            try:
                certificate, key = ensure_in(Path(settings.cert_dir), hosts)
            except OSError as error:
                raise TlsError(f"--cert-dir: cannot use {settings.cert_dir}: {error.strerror}") from None
            return self._with_files(certificate, key, "--cert-dir")
        context = self._bare()
        pair = self_signed(hosts)
        load_pem(context, pair.certificate + pair.key)
        return context

    def _bare(self) -> ssl.SSLContext:
        settings = self._settings
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        if settings.min_version and settings.min_version not in VERSIONS:
            raise TlsError(f"--tls-min-version: {settings.min_version!r} is not one of {', '.join(VERSIONS)}")
        context.minimum_version = VERSIONS[settings.min_version or "VersionTLS12"]
        chosen = [suite for suite in settings.cipher_suites if suite not in _ALWAYS_ON]
        if chosen:
            context.set_ciphers(_ciphers(chosen))
        if settings.curves:
            context.set_ecdh_curve(_curve(settings.curves))
        if settings.client_authorities:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(cadata=settings.client_authorities.decode("ascii"))
        return context

    def _with_files(self, certificate: str, key: str, flag: str) -> ssl.SSLContext:
        context = self._bare()
        try:
            context.load_cert_chain(certificate, key, password="")
        except (OSError, ValueError) as error:
            # SSLError is an OSError.
            raise TlsError(f"{flag}: cannot use {certificate} with {key}: {error}") from None
        self._files.append((context, certificate, key, flag))
        self._changed(certificate, key)
        return context

    def _changed(self, *paths: str) -> bool:
        changed = False
        for path in paths:
            try:
                stat = os.stat(path)
            except OSError:
                continue
            mark = (stat.st_mtime_ns, stat.st_ino)
            changed |= self._seen.get(path) != mark
            self._seen[path] = mark
        return changed

    def refresh(self) -> None:
        """Reload changed files; errors are logged, and the previous certificate is kept."""
        for context, certificate, key, flag in self._files:
            if self._changed(certificate, key):
                try:
                    context.load_cert_chain(certificate, key, password="")
                except (OSError, ValueError) as error:
                    log.error("Keeping the previous certificate: the new one is invalid", err=error, flag=flag)
                else:
                    log.info("Reloaded certificate", certificate=certificate)

    def trust(self, authorities: bytes) -> None:
        """Also accept client certificates of these authorities (PEM); the authenticator decides what they permit."""
        if authorities:
            for context in (self.context, *self._by_name.values()):
                context.verify_mode = ssl.CERT_OPTIONAL
                context.load_verify_locations(cadata=authorities.decode("ascii"))

    def _select(self, connection: ssl.SSLObject, name: str | None, _: Any) -> None:
        host = (name or "").lower()
        wildcard = "*." + host.partition(".")[2]
        context = self._by_name.get(host) or self._by_name.get(wildcard)
        if context is not None:
            connection.context = context


def _curve(wanted: tuple[int, ...]) -> str:
    if len(wanted) > 1 or wanted[0] not in CURVES:
        known = ", ".join(f"{number} ({name})" for number, name in CURVES.items())
        raise TlsError(f"--tls-curve-preferences: must be one of {known}; Python's ssl module accepts only one")
    return CURVES[wanted[0]]


def _ciphers(suites: list[str]) -> str:
    """Return the suites for OpenSSL. Raises TlsError for unknown ones, which OpenSSL would ignore."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    known = {cipher["name"] for cipher in context.get_ciphers()}
    unknown = [suite for suite in suites if _openssl_name(suite) not in known]
    if unknown:
        raise TlsError(f"--tls-cipher-suites: not supported by this OpenSSL: {', '.join(unknown)}")
    return ":".join(map(_openssl_name, suites))


def _openssl_name(suite: str) -> str:
    """Return OpenSSL's name: `ECDHE-RSA-AES128-GCM-SHA256` for `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`."""
    name = suite.removeprefix("TLS_")
    for part, short in _OPENSSL_NAMES.items():
        name = name.replace(part, short)
    return name.removeprefix("RSA_WITH_").replace("_WITH_", "-").replace("_CBC", "").replace("_", "-")
