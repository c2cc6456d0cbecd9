"""Assembly of the scheduler's HTTPS server: certificates, authentication, authorization, and pages."""

import os
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from kubestow.cli.scheduler.live import LiveScheduler
from kubestow.client.access import open_channel
from kubestow.client.api import ApiClient, Channel
from kubestow.client.clients import user_agent
from kubestow.client.incluster import in_cluster_access, runs_in_cluster
from kubestow.client.kubeconfig import load_kubeconfig
from kubestow.client.requests import Requests
from kubestow.server.authentication import Authenticator
from kubestow.server.authorities import Trust, find_authorities
from kubestow.server.authorization import Authorizer
from kubestow.server.health import Check, lease_check, sync_check
from kubestow.server.options import ServingOptions
from kubestow.server.pages import DECISIONS, Page, Pages, Subject
from kubestow.server.serving import SecureServer
from kubestow.server.tls import ServerContexts
from kubestow.telemetry.logs import get_logger

if TYPE_CHECKING:
    from kubestow.insight.page.pages import Site

log = get_logger(__name__)


class Serving:
    """The HTTPS server of a live scheduler."""

    def __init__(self, options: ServingOptions, live: LiveScheduler, more: "Site | None" = None) -> None:
        self._options = options
        self._live = live
        self._more = more
        self._channels: list[Channel] = []
        self._server: SecureServer | None = None

    @property
    def port(self) -> int:
        return 0 if self._server is None else self._server.port

    async def start(self, listener: socket.socket | None = None) -> None:
        """Serve on the socket, by default on a new one. Raises TlsError, ListenError, CallError."""
        options = self._options
        listener = listener or options.listening.open()
        authentication = self._client(options.authentication_kubeconfig, "authentication")
        authorization = self._client(options.authorization_kubeconfig, "authorization")
        authorities = await find_authorities(options, authentication)
        tls = replace(options.tls, client_authorities=authorities.pem)
        self._server = SecureServer(
            Pages(self._subject(), self._live.options.clock.now),
            Authenticator(
                reviews=None if authentication is None else Requests(authentication),
                client_authorities=authorities.of_clients(),
                proxies=authorities.front_proxies(options.proxies),
                cache_seconds=options.token_seconds,
            ),
            Authorizer(
                reviews=None if authorization is None else Requests(authorization),
                open_paths=options.open_paths + (() if self._more is None else self._more.open_paths),
                allowed_seconds=options.allowed_seconds,
                denied_seconds=options.denied_seconds,
            ),
            ServerContexts(tls, options.listening.certificate_hosts),
            Trust(options, authentication, authorities),
        )
        self._server.start(listener)
        log.info("Serving securely", address=options.listening.address, port=self.port)

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()
        for channel in self._channels:
            channel.close()

    def _subject(self) -> Subject:
        live, options, more = self._live, self._options, self._more
        below: dict[str, Page] = {}
        if live.decisions is not None:
            # Imported only now: unused without records.
            from kubestow.insight.decisions.pages import DecisionPages

            below[DECISIONS] = DecisionPages(live.decisions).answer
        if more is not None:
            below[more.path] = more.answer
        electing = () if live.elector is None else (lease_check(live.elector),)
        return Subject(
            lambda: live.configuration,
            live.options.features,
            options.flags,
            live.metrics,
            electing,
            (
                *electing,
                Check("shutdown", lambda: "process is shutting down" if live.stopping else None),
                sync_check(live.synced.is_set, live.informers.unsynced),
            ),
            options.set_verbosity,
            live.pods,
            lambda: live.leads,
            below,
            {} if more is None else more.posts,
        )

    def _client(self, kubeconfig: str, purpose: str) -> ApiClient | None:
        """Return a client of the API server for reviews, None if no API server is configured."""
        if kubeconfig:
            access = load_kubeconfig([kubeconfig], must_exist=True)
        elif runs_in_cluster(os.environ):
            access = in_cluster_access(os.environ)
        else:
            log.warning("No kubeconfig given, and not in a pod: the API server is not queried", purpose=purpose)
            return None
        channel = open_channel(access, most_requests=8, clock=self._live.options.clock)
        self._channels.append(channel)
        return ApiClient(channel, user_agent=user_agent(purpose), seconds=10.0, metrics=self._live.metrics.client)
