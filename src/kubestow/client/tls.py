"""TLS to the API server: the trusted authorities and the client certificate.

A context is created again whenever one of its files has changed, so that the next connection uses rotated authorities
and certificates. The first handshake of a context is a full one; further ones resume an earlier session if the server
allows it, which takes a third of the CPU time at the client and less at the server.
"""

import os
import ssl

import msgspec

from kubestow.client.errors import CredentialsError
from kubestow.client.secretive import Secretive


class Certificate(Secretive, frozen=True):
    """A certificate and its key, each as PEM data or as the path of a PEM file; data takes precedence."""

    cert_data: bytes | None = None
    key_data: bytes | None = None
    cert_file: str = ""
    key_file: str = ""


class TlsSettings(msgspec.Struct, frozen=True):
    """The TLS settings of a kubeconfig; `source` names it in error messages."""

    source: str = ""
    ca_data: bytes | None = None
    ca_file: str = ""
    certificate: Certificate | None = None
    insecure: bool = False
    server_name: str = ""


class ResumingContext(ssl.SSLContext):
    """A context whose handshakes resume the session of an earlier one."""

    _latest: ssl.SSLObject | None = None
    _session: ssl.SSLSession | None = None

    def can_resume(self) -> bool:
        """Return whether the server has sent a session ticket, which follows the handshake."""
        latest = self._latest
        # Before the end of the handshake there is no session. A resumed session can be resumed again, so it is kept:
        # reading `session` creates a copy, for which OpenSSL parses the server's certificate again.
        if latest is not None and latest.version() is not None and not latest.session_reused:
            session = latest.session
            if session is not None and session.has_ticket:
                self._session, self._latest = session, None
        return self._session is not None

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Create the TLS object of a connection. Called by the event loop."""
        self.can_resume()
        if isinstance(server_hostname, str) and server_hostname.isascii():
            # A str would be encoded with tables that take milliseconds to load.
            server_hostname = server_hostname.encode()
        self._latest = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session or self._session)
        return self._latest


class TlsContexts:
    """Creates the context for the next connection."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._certificate = settings.certificate
        self._made: ResumingContext | None = None
        self._made_from: tuple[tuple[str, int, int], ...] = ()

    def set_certificate(self, certificate: Certificate) -> bool:
        """Set the client certificate of further connections; return whether it changed."""
        if certificate == self._certificate:
            return False
        self._certificate = certificate
        self._made = None
        return True

    def current(self) -> ResumingContext:
        """Return the context for the next connection. Raises CredentialsError if the settings are invalid."""
        files = self._fingerprint()
        if self._made is None or files != self._made_from:
            self._made = _make(self._settings, self._certificate)
            self._made_from = files
        return self._made

    def _fingerprint(self) -> tuple[tuple[str, int, int], ...]:
        paths = [] if self._settings.ca_data else [self._settings.ca_file]
        if self._certificate is not None:
            paths += [] if self._certificate.cert_data else [self._certificate.cert_file]
            paths += [] if self._certificate.key_data else [self._certificate.key_file]
        found = []
        for path in filter(None, paths):
            try:
                stat = os.stat(path)
            except OSError:
                continue  # reported with its field when the context is created
            found.append((path, stat.st_mtime_ns, stat.st_ino))
        return tuple(found)


def _make(settings: TlsSettings, certificate: Certificate | None) -> ResumingContext:
    context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.ca_data or settings.ca_file:
        _trust(context, settings)
    else:
        context.load_default_certs()
    if certificate is not None:
        _load_certificate(context, certificate, settings.source)
    return context


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    named = "certificate-authority-data" if settings.ca_data else "certificate-authority"
    try:
        if settings.ca_data:
            context.load_verify_locations(cadata=settings.ca_data.decode("ascii"))
        else:
            context.load_verify_locations(cafile=settings.ca_file)
    except (ssl.SSLError, ValueError) as error:
        raise CredentialsError(settings.source, named, f"not a PEM certificate: {error}") from None
    except OSError as error:
        raise CredentialsError(settings.source, named, f"cannot read {settings.ca_file}: {error.strerror}") from None


def _load_certificate(context: ssl.SSLContext, certificate: Certificate, source: str) -> None:
    cert = certificate.cert_data or read_pem(certificate.cert_file, source, "client-certificate")
    key = certificate.key_data or read_pem(certificate.key_file, source, "client-key")
    try:
        load_pem(context, cert + b"\n" + key)
    except (ssl.SSLError, ValueError) as error:
        raise CredentialsError(
            source, "client-certificate", f"the certificate and its key cannot be used together: {error}"
        ) from None


def load_pem(context: ssl.SSLContext, pem: bytes) -> None:
    """Load a certificate and its key into a context. Raises SSLError or ValueError if they are invalid."""
    # Imported on demand: it is slow, and most users have no certificate.
    import tempfile

    # Python's ssl module accepts only a path; the file is readable only by its owner and deleted at once.
    descriptor, path = tempfile.mkstemp(prefix="kubestow-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        # An encrypted key must fail, not prompt at the terminal.
        context.load_cert_chain(path, password="")
    finally:
        os.unlink(path)


def read_pem(path: str, source: str, named: str) -> bytes:
    """Return the content of a file. Raises CredentialsError, which names the source and the field."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise CredentialsError(source, named, f"cannot read {path}: {error.strerror}") from None
