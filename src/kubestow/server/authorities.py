"""The trusted certificate authorities: those of the flags, or else those published in the cluster.

Kubernetes publishes them in the ConfigMap extension-apiserver-authentication, for all servers besides the API server.
Files and ConfigMap are read again while the server runs, so that a new authority needs no restart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
from cryptography import x509

from kubestow.api.failures import CallError, NotFoundError
from kubestow.client.api import ApiClient
from kubestow.server.authentication import Authenticator, FrontProxies
from kubestow.server.options import ServingOptions
from kubestow.server.tls import ServerContexts, TlsError
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

_CLIENTS, _PROXIES = "--client-ca-file", "--requestheader-client-ca-file"
_CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


@dataclass(frozen=True, slots=True)
class Authorities:
    """The trusted authorities, as PEM."""

    clients: str = ""
    proxies: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The data of the ConfigMap about front proxies."""

    @property
    def pem(self) -> bytes:
        """The PEM of all authorities."""
        return "\n".join(filter(None, (self.clients, self.proxies))).encode()

    def of_clients(self) -> tuple[x509.Certificate, ...]:
        """Return the authorities of clients. Raises TlsError if they are invalid."""
        return _certificates(self.clients, _CLIENTS)

    def front_proxies(self, given: FrontProxies) -> FrontProxies | None:
        """Return the proxies, None without authorities; the cluster's settings override `given`. Raises TlsError."""
        if not self.proxies:
            return None

        def setting(name: str, default: tuple[str, ...]) -> tuple[str, ...]:
            text = self.settings.get(f"requestheader-{name}", "")
            return tuple(msgspec.json.decode(text, type=list[str])) if text else default

        return FrontProxies(
            _certificates(self.proxies, _PROXIES),
            frozenset(setting("allowed-names", tuple(given.allowed_names))),
            setting("username-headers", given.user_headers),
            setting("group-headers", given.group_headers),
            setting("uid-headers", given.uid_headers),
            setting("extra-headers-prefix", given.extra_prefixes),
        )


def configured_authorities(options: ServingOptions) -> Authorities:
    """Return the authorities in the files of the flags. Raises TlsError if they cannot be read."""
    return Authorities(_read(options.client_ca_file, _CLIENTS), _read(options.proxy_ca_file, _PROXIES))


async def find_authorities(
    options: ServingOptions, client: ApiClient | None, known: Authorities | None = None
) -> Authorities:
    """Return the authorities in the files, supplemented by those of the cluster. Raises TlsError or CallError.

    With `known`, the previous result, an error of the cluster is ignored and its previous authorities are kept.
    """
    given = configured_authorities(options)
    if client is None or options.skips_lookup or (given.clients and given.proxies):
        return given
    try:
        response = await client.request("GET", _CONFIG_MAP)
        found: dict[str, str] = msgspec.json.decode(response.body).get("data") or {}
    except CallError as error:
        if known is not None:
            clients = given.clients if options.client_ca_file else known.clients
            return replace(given if options.proxy_ca_file else known, clients=clients)
        # As in kube-scheduler, a missing ConfigMap is not an error.
        if not options.tolerates_lookup_failure and not isinstance(error, NotFoundError):
            raise
        log.warning("Unable to look up certificate authorities in the cluster; continuing without them", err=error)
        return given
    return Authorities(
        given.clients or found.get("client-ca-file", ""),
        given.proxies or found.get("requestheader-client-ca-file", ""),
        {} if given.proxies else found,
    )


class Trust:
    """The authorities that a server trusts; `refresh` applies changes to it."""

    def __init__(self, options: ServingOptions, client: ApiClient | None, known: Authorities) -> None:
        self._options = options
        self._client = client
        self._known = known

    async def refresh(self, contexts: ServerContexts, authenticator: Authenticator) -> None:
        """Apply changed authorities; invalid ones are logged, and the previous ones are kept."""
        try:
            found = await find_authorities(self._options, self._client, self._known)
            if found == self._known:
                return
            clients, proxies = found.of_clients(), found.front_proxies(self._options.proxies)
        except (TlsError, msgspec.MsgspecError) as error:
            log.error("Keeping the previous certificate authorities: the new ones are invalid", err=error)
            return
        self._known = found
        contexts.trust(found.pem)
        authenticator.trust(clients, proxies)
        log.info("Reloaded certificate authorities")


def _read(path: str, flag: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError as error:
        raise TlsError(f"{flag}: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TlsError(f"{flag}: {path} contains no PEM certificates") from None


def _certificates(pem: str, flag: str) -> tuple[x509.Certificate, ...]:
    if not pem:
        return ()
    try:
        return tuple(x509.load_pem_x509_certificates(pem.encode()))
    except ValueError as error:
        raise TlsError(f"{flag}: invalid certificates: {error}") from None
