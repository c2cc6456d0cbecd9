"""What the scheduler serves, put together: certificates, who may read, and the pages about a live scheduler."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from cryptography import x509

from kubestow.client.access import Access, open_channel
from kubestow.client.api import ApiClient, Channel
from kubestow.client.incluster import in_cluster_access, runs_in_cluster
from kubestow.client.kubeconfig import load_kubeconfig
from kubestow.client.requests import Requests
from kubestow.model.failures import CallError
from kubestow.reporting.logs import get_logger
from kubestow.server.authentication import Authenticator, FrontProxies
from kubestow.server.authorization import Authorizer
from kubestow.server.health import Check
from kubestow.server.pages import Pages, Subject
from kubestow.server.serving import Listening, SecureServer
from kubestow.server.tls import ServerContexts, ServerTls, TlsError
from kubestow.wiring.clients import user_agent
from kubestow.wiring.live import LiveScheduler

log = get_logger(__name__)

OVERDUE_SECONDS = 20.0
"""How long after the end of its lease a leader that has not stopped is still taken for healthy."""
_LOOKED_UP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """What the flags about serving say."""

    listening: Listening = field(default_factory=Listening)
    tls: ServerTls = field(default_factory=ServerTls)
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    skips_lookup: bool = False
    tolerates_lookup_failure: bool = True
    client_ca_file: str = ""
    proxy_ca_file: str = ""
    proxies: FrontProxies = field(default_factory=lambda: FrontProxies(()))
    """As the flags say, without the authorities."""
    token_seconds: float = 10.0
    allowed_seconds: float = 10.0
    denied_seconds: float = 10.0
    open_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    flags: Mapping[str, str] = field(default_factory=dict)
    set_verbosity: Callable[[int], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class _Authorities:
    """PEM of the authorities whose certificates are looked at."""

    clients: str = ""
    proxies: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What else the cluster says about front proxies."""


class Serving:
    """The server about a live scheduler."""

    def __init__(self, options: ServingOptions, live: LiveScheduler) -> None:
        self._options = options
        self._live = live
        self._clock = live.options.clock
        self._channels: list[Channel] = []
        self._server: SecureServer | None = None

    @property
    def port(self) -> int:
        return 0 if self._server is None else self._server.port

    async def start(self) -> None:
        """Listen; raises TlsError, ListenError, CallError."""
        options = self._options
        authentication = self._client(options.authentication_kubeconfig, "authentication")
        authorization = self._client(options.authorization_kubeconfig, "authorization")
        authorities = await self._authorities(authentication)
        proxies = _proxies(options.proxies, authorities)
        trusted = "\n".join(filter(None, (authorities.clients, authorities.proxies)))
        tls = ServerTls(
            options.tls.cert_file,
            options.tls.key_file,
            options.tls.cert_dir,
            options.tls.sni,
            options.tls.min_version,
            options.tls.cipher_suites,
            trusted.encode(),
        )
        self._server = SecureServer(
            Pages(self._subject(), self._clock.now),
            Authenticator(
                reviews=None if authentication is None else Requests(authentication),
                client_authorities=_certificates(authorities.clients, "--client-ca-file"),
                proxies=proxies,
                remember_seconds=options.token_seconds,
            ),
            Authorizer(
                reviews=None if authorization is None else Requests(authorization),
                open_paths=options.open_paths,
                allowed_seconds=options.allowed_seconds,
                denied_seconds=options.denied_seconds,
            ),
            ServerContexts(tls, options.listening.certificate_hosts),
            options.listening,
        )
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()
        for channel in self._channels:
            channel.close()

    def _subject(self) -> Subject:
        live, options = self._live, self._options
        watchdog = Check("leaderElection", self._watchdog)
        electing = (watchdog,) if live.elector is not None else ()
        return Subject(
            live.options.configuration,
            live.options.features,
            options.flags,
            live.metrics,
            electing,
            (
                *electing,
                Check("shutdown", lambda: "process is shutting down" if live.stopping else None),
                Check("sched-handler-sync", self._unsynced),
            ),
            options.set_verbosity,
        )

    def _watchdog(self) -> str | None:
        elector = self._live.elector
        if elector is not None and elector.overdue(OVERDUE_SECONDS):
            name = self._live.options.configuration.leaderElection.resourceName
            return f"failed election to renew leadership on lease {name}"
        return None

    def _unsynced(self) -> str | None:
        if self._live.synced.is_set():
            return None
        return f"handlers are not fully synchronized: {', '.join(self._live.informers.unsynced()) or 'almost'}"

    def _client(self, kubeconfig: str, purpose: str) -> ApiClient | None:
        """A client at the API server that is asked about others; None if there is none to ask."""
        access: Access
        if kubeconfig:
            access = load_kubeconfig([kubeconfig], must_exist=True)
        elif runs_in_cluster(os.environ):
            access = in_cluster_access(os.environ)
        else:
            log.warning("No kubeconfig given, and not in a pod: the API server is not asked", purpose=purpose)
            return None
        channel = open_channel(access, most_requests=8, clock=self._clock)
        self._channels.append(channel)
        return ApiClient(channel, user_agent=user_agent(purpose), seconds=10.0, observer=self._live.metrics.requests)

    async def _authorities(self, client: ApiClient | None) -> _Authorities:
        options = self._options
        clients = _read(options.client_ca_file, "--client-ca-file")
        proxies = _read(options.proxy_ca_file, "--requestheader-client-ca-file")
        if client is None or options.skips_lookup or (clients and proxies):
            return _Authorities(clients, proxies)
        try:
            answer = await client.request("GET", _LOOKED_UP)
            found: dict[str, str] = msgspec.json.decode(answer.body).get("data") or {}
        except CallError as error:
            if not options.tolerates_lookup_failure:
                raise
            log.warning("Unable to look up in the cluster whose certificates to trust; going on without", err=error)
            return _Authorities(clients, proxies)
        return _Authorities(
            clients or found.get("client-ca-file", ""),
            proxies or found.get("requestheader-client-ca-file", ""),
            {} if proxies else found,
        )


def _proxies(given: FrontProxies, authorities: _Authorities) -> FrontProxies | None:
    if not authorities.proxies:
        return None

    def looked_up(name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        text = authorities.settings.get(f"requestheader-{name}", "")
        return tuple(msgspec.json.decode(text, type=list[str])) if text else default

    return FrontProxies(
        _certificates(authorities.proxies, "--requestheader-client-ca-file"),
        frozenset(looked_up("allowed-names", tuple(given.allowed_names))),
        looked_up("username-headers", given.user_headers),
        looked_up("group-headers", given.group_headers),
        looked_up("uid-headers", given.uid_headers),
        looked_up("extra-headers-prefix", given.extra_prefixes),
    )


def _read(path: str, flag: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise TlsError(f"{flag}: cannot read {path}: {error}") from None


def _certificates(pem: str, flag: str) -> tuple[x509.Certificate, ...]:
    if not pem:
        return ()
    try:
        return tuple(x509.load_pem_x509_certificates(pem.encode()))
    except ValueError as error:
        raise TlsError(f"{flag}: holds no certificates: {error}") from None
