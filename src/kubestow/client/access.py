"""The address of the API server and the credentials, and how a channel is opened with them.

Sources, in order: --kubeconfig; $KUBECONFIG; the service account of the pod that this process runs in; ~/.kube/config.
--master replaces the address found there, or is used without credentials for a server that needs none.
"""

import asyncio
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from kubestow.client import auth as auths
from kubestow.client.api import Channel
from kubestow.client.dialing import Dialer, parse_server
from kubestow.client.errors import CredentialsError
from kubestow.client.pool import Pool
from kubestow.client.proxies import parse_proxy, proxy_from_environment
from kubestow.client.secretive import Secretive
from kubestow.client.tls import TlsContexts, TlsSettings
from kubestow.clock import Clock
from kubestow.telemetry.metrics.client import ClientMetrics

if TYPE_CHECKING:
    from kubestow.client.execplugin import ExecPlugin
    from kubestow.client.oidc import OidcSettings

MAX_REQUESTS = 24
"""Maximum number of concurrent requests, each on its own connection.

More do not bind more pods per second, and a burst of writes makes an API server drop watchers that are too slow.
"""


class Identity(Secretive, frozen=True):
    """The credentials of one user, as configured; at most one kind is set, not counting a certificate."""

    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    plugin: "ExecPlugin | None" = None
    oidc: "OidcSettings | None" = None
    impersonation: tuple[tuple[str, str], ...] = ()


class Access(msgspec.Struct, frozen=True):
    """A server and an identity; `source` names their origin in error messages."""

    source: str
    server: str
    tls: TlsSettings = msgspec.field(default_factory=TlsSettings)
    identity: Identity = msgspec.field(default_factory=Identity)
    proxy_url: str = ""
    server_field: str = "server"
    namespace: str = ""
    """The namespace of the context."""
    scheduler: str = ""
    """The URL at which the cluster's scheduler serves its own pages, if configured."""


def override_server(access: Access | None, master: str) -> Access:
    """Return an access with the same identity at another address."""
    if access is None:
        return Access(source="flags", server=master, server_field="--master")
    return msgspec.structs.replace(access, server=master, server_field="--master")


def open_channel(
    access: Access,
    *,
    most_requests: int = MAX_REQUESTS,
    largest_answer: float = math.inf,
    environ: Mapping[str, str] = os.environ,
    clock: Clock,
    metrics: ClientMetrics | None = None,
) -> Channel:
    """Create a channel, without connecting yet, in the running loop. Raises CredentialsError if `access` is invalid."""
    loop = asyncio.get_running_loop()
    endpoint = parse_server(access.server, access.source, access.server_field)
    proxy = (
        parse_proxy(access.proxy_url, access.source, "proxy-url")
        if access.proxy_url
        else proxy_from_environment(endpoint.scheme, endpoint.host, endpoint.port, environ)
    )
    tls = TlsContexts(access.tls)
    if endpoint.scheme == "https":
        tls.current()  # report wrong certificates at the start, not at the first request
    dialer = Dialer(endpoint, tls, loop, server_name=access.tls.server_name, proxy=proxy, largest_answer=largest_answer)
    pool = Pool(dialer, most_requests, loop)
    metrics = metrics or ClientMetrics()
    metrics.transports_created.inc("miss")
    auth = _auth(access, tls, pool, environ, clock, metrics)
    headers = "".join(f"{name}: {value}\r\n" for name, value in access.identity.impersonation)
    return Channel(endpoint, pool, auth, headers.encode())


def _auth(
    access: Access,
    tls: TlsContexts,
    pool: Pool,
    environ: Mapping[str, str],
    clock: Clock,
    metrics: ClientMetrics,
) -> auths.Auth:
    identity = access.identity
    _reject_several(access)
    # Imported on demand: rarely used.
    if identity.plugin is not None:
        from kubestow.client.execplugin import ExecAuth

        return ExecAuth(identity.plugin, access.source, tls, pool, environ, clock, metrics)
    if identity.oidc is not None:
        from kubestow.client.oidc import OidcAuth

        return OidcAuth(identity.oidc, access.source, environ, clock)
    if identity.token_file:
        loop = asyncio.get_running_loop()
        return auths.TokenFile(identity.token_file, access.source, identity.token, loop)
    if identity.token:
        return auths.Fixed(auths.bearer(identity.token))
    if identity.username:
        return auths.Fixed(auths.basic(identity.username, identity.password))
    return auths.Fixed()


def _reject_several(access: Access) -> None:
    identity = access.identity
    kinds: dict[Literal["token", "username", "exec", "auth-provider"], object] = {
        "token": identity.token or identity.token_file,
        "username": identity.username,
        "exec": identity.plugin,
        "auth-provider": identity.oidc,
    }
    given = [kind for kind, value in kinds.items() if value]
    if len(given) > 1:
        raise CredentialsError(access.source, "user", f"more than one way to log in: {', '.join(given)}; keep one")
