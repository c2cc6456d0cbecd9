"""A server of pages on a free port, an API server that only answers reviews, and a client for both."""

import asyncio
import http.client
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509

from kubestow import config
from kubestow.api.pod import Pod
from kubestow.client.reviews import AccessReviewStatus, ReviewedUser, TokenReviewStatus
from kubestow.config import Features
from kubestow.server.authentication import Authenticator, FrontProxies
from kubestow.server.authorization import Authorizer
from kubestow.server.health import Check
from kubestow.server.listening import Listening
from kubestow.server.pages import Page, Pages, Subject
from kubestow.server.serving import SecureServer
from kubestow.server.tls import ServerContexts, ServerTls
from kubestow.telemetry.metrics.catalogue import Metrics


class Reviews:
    """Answers reviews of a few tokens and rights; records every request."""

    def __init__(self, tokens: dict[str, str] | None = None, allowed: set[tuple[str, str, str]] | None = None) -> None:
        self.tokens = tokens or {}
        self.allowed = allowed or set()
        self.asked: list[tuple[str, ...]] = []
        self.failure: Exception | None = None

    async def review_token(self, token: str) -> TokenReviewStatus:
        self.asked.append(("token", token))
        if self.failure is not None:
            raise self.failure
        if token not in self.tokens:
            return TokenReviewStatus()
        return TokenReviewStatus(True, ReviewedUser(self.tokens[token], groups=("system:authenticated",)))

    async def review_access(self, user: ReviewedUser, verb: str, path: str) -> AccessReviewStatus:
        self.asked.append(("access", user.username, verb, path))
        if self.failure is not None:
            raise self.failure
        return AccessReviewStatus(allowed=(user.username, verb, path) in self.allowed)


@dataclass
class Setting:
    """The options of a test."""

    reviews: Reviews = field(default_factory=Reviews)
    health: tuple[Check, ...] = ()
    ready: tuple[Check, ...] = ()
    features: Features = field(default_factory=Features)
    tls: ServerTls = field(default_factory=ServerTls)
    clients: tuple[x509.Certificate, ...] = ()
    proxies: FrontProxies | None = None
    open_paths: tuple[str, ...] = ("/healthz", "/livez", "/readyz")
    verbosities: list[int] = field(default_factory=list)
    below: Mapping[str, Page] = field(default_factory=dict)
    pods: tuple[Pod, ...] = ()
    leads: bool = True
    posts: Mapping[str, Page] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    content_type: str
    raw: bytes


class Reader:
    """Sends requests to the server, each on a new connection."""

    def __init__(self, server: SecureServer) -> None:
        self.server = server

    async def get(self, path: str, token: str = "", **more: Any) -> Answer:
        headers = more.pop("headers", {})
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return await asyncio.to_thread(self._ask, path, headers, **more)

    def _ask(
        self, path: str, headers: dict[str, str], method: str = "GET", body: str = "", shown: Path | None = None
    ) -> Answer:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if shown is not None:
            context.load_cert_chain(shown)
        connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, context=context, timeout=300)
        try:
            connection.request(method, path, body or None, headers)
            response = connection.getresponse()
            raw = response.read()
            return Answer(response.status, raw.decode(errors="replace"), response.getheader("Content-Type") or "", raw)
        finally:
            connection.close()


@asynccontextmanager
async def served(setting: Setting) -> AsyncIterator[Reader]:
    """Run a server until the end of the block."""
    subject = Subject(
        config.default,
        setting.features,
        {"v": "4", "secure-port": "10259"},
        Metrics(),
        setting.health,
        setting.ready,
        setting.verbosities.append,
        lambda: setting.pods,
        lambda: setting.leads,
        setting.below,
        setting.posts,
    )
    reviews: Any = setting.reviews
    server = SecureServer(
        Pages(subject, lambda: 1_800_000_000.0),
        Authenticator(reviews=reviews, client_authorities=setting.clients, proxies=setting.proxies),
        Authorizer(reviews=reviews, open_paths=setting.open_paths),
        ServerContexts(setting.tls, ["localhost", "127.0.0.1"]),
    )
    server.start(Listening("127.0.0.1", 0).open())
    try:
        yield Reader(server)
    finally:
        await server.stop()
