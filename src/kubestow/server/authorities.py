"""Whose certificates are trusted: the authorities that the flags name, or else those that the cluster has written down.

Kubernetes keeps them in the ConfigMap extension-apiserver-authentication, for every server that stands beside the API
server. Files and cluster are looked at again while the server runs, so that a new authority needs no restart.
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
_LOOKED_UP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


@dataclass(frozen=True, slots=True)
class Authorities:
    """PEM of the authorities whose certificates are looked at."""

    clients: str = ""
    proxies: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What else the cluster says about front proxies."""

    @property
    def pem(self) -> bytes:
        """All of them."""
        return "\n".join(filter(None, (self.clients, self.proxies))).encode()

    def of_clients(self) -> tuple[x509.Certificate, ...]:
        """Raises TlsError."""
        return _certificates(self.clients, _CLIENTS)

    def front_proxies(self, given: FrontProxies) -> FrontProxies | None:
        """The proxies as the flags say, save what the cluster says; None without authorities. Raises TlsError."""
        if not self.proxies:
            return None

        def looked_up(name: str, default: tuple[str, ...]) -> tuple[str, ...]:
            text = self.settings.get(f"requestheader-{name}", "")
            return tuple(msgspec.json.decode(text, type=list[str])) if text else default

        return FrontProxies(
            _certificates(self.proxies, _PROXIES),
            frozenset(looked_up("allowed-names", tuple(given.allowed_names))),
            looked_up("username-headers", given.user_headers),
            looked_up("group-headers", given.group_headers),
            looked_up("uid-headers", given.uid_headers),
            looked_up("extra-headers-prefix", given.extra_prefixes),
        )


def given_authorities(options: ServingOptions) -> Authorities:
    """Those in the files that the flags name; raises TlsError."""
    return Authorities(_read(options.client_ca_file, _CLIENTS), _read(options.proxy_ca_file, _PROXIES))


async def find_authorities(
    options: ServingOptions, client: ApiClient | None, known: Authorities | None = None
) -> Authorities:
    """Read the files, and ask the cluster for what they leave open; raises TlsError, CallError.

    With those `known` from before, a cluster that does not answer changes nothing of what it said, and nothing is told.
    """
    given = given_authorities(options)
    if client is None or options.skips_lookup or (given.clients and given.proxies):
        return given
    try:
        answer = await client.request("GET", _LOOKED_UP)
        found: dict[str, str] = msgspec.json.decode(answer.body).get("data") or {}
    except CallError as error:
        if known is not None:
            clients = given.clients if options.client_ca_file else known.clients
            return replace(given if options.proxy_ca_file else known, clients=clients)
        # That nothing is written down is no failure, for kube-scheduler neither.
        if not options.tolerates_lookup_failure and not isinstance(error, NotFoundError):
            raise
        log.warning("Unable to look up in the cluster whose certificates to trust; going on without", err=error)
        return given
    return Authorities(
        given.clients or found.get("client-ca-file", ""),
        given.proxies or found.get("requestheader-client-ca-file", ""),
        {} if given.proxies else found,
    )


class Trust:
    """Whom a server trusts; `look_again` tells it of those that have changed."""

    def __init__(self, options: ServingOptions, client: ApiClient | None, known: Authorities) -> None:
        self._options = options
        self._client = client
        self._known = known

    async def look_again(self, contexts: ServerContexts, authenticator: Authenticator) -> None:
        """What cannot be read or used is told, and the old ones are kept."""
        try:
            found = await find_authorities(self._options, self._client, self._known)
            if found == self._known:
                return
            clients, proxies = found.of_clients(), found.front_proxies(self._options.proxies)
        except (TlsError, msgspec.MsgspecError) as error:
            log.error("Keeping the old authorities: the new ones cannot be used", err=error)
            return
        self._known = found
        contexts.trust(found.pem)
        authenticator.trust(clients, proxies)
        log.info("Authorities for certificates read again")


def _read(path: str, flag: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError as error:
        raise TlsError(f"{flag}: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TlsError(f"{flag}: {path} holds no certificates in PEM") from None


def _certificates(pem: str, flag: str) -> tuple[x509.Certificate, ...]:
    if not pem:
        return ()
    try:
        return tuple(x509.load_pem_x509_certificates(pem.encode()))
    except ValueError as error:
        raise TlsError(f"{flag}: holds no certificates: {error}") from None
