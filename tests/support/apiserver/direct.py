"""The application without sockets: requests go in as objects, responses come out."""

import json
from collections.abc import Callable
from typing import Any

from kubestow.apiserver import bootstrap
from kubestow.apiserver.auth.identities import Identities
from kubestow.apiserver.rest.application import Application
from kubestow.apiserver.rest.watching import Watchers
from kubestow.apiserver.store.store import Store
from kubestow.server.http.messages import Request, Response


class Wire:
    """Stands in for a connection: keeps what would be sent."""

    def __init__(self) -> None:
        self.response: Response | None = None
        self.sent = b""
        self.identity: Any = None
        self.peer_certificate: Any = None

    def respond(self, response: Response) -> None:
        """A response goes out."""
        self.response = response

    def open_stream(self, content_type: bytes, on_lost: Callable[[], None], first: bytes) -> None:
        """A stream begins."""
        self.response = Response(200, b"", content_type=content_type)
        self.sent += first

    def write(self, data: bytes) -> None:
        """A piece of a stream goes out."""
        self.sent += data

    def end_stream(self) -> None:
        """A stream ends."""


class Direct:
    """An application on a fresh store; needs a running event loop."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or Store()
        self.watchers = Watchers(self.store, max_watches=1000)
        self.application = Application(self.store, Identities("token", self.store), self.watchers)
        bootstrap.add_initial_objects(self.application.mutations.writer)

    def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Wire:
        """Sends a request; returns what came back."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        headers = {
            b"authorization": b"Bearer token",
            b"content-type": content_type.encode(),
            b"accept": accept.encode(),
        }
        wire = Wire()
        self.application(Request(method, target.encode(), headers, data), wire)  # type: ignore[arg-type]
        return wire

    def call(self, method: str, target: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Sends a request; returns status and decoded body."""
        wire = self.send(method, target, body, content_type)
        assert wire.response is not None
        text = wire.response.body
        return wire.response.status, json.loads(text) if text[:1] in (b"{", b"[") else text
