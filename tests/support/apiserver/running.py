"""A control plane in a thread of its own, and a small blocking client for it."""

import asyncio
import http.client
import json
import ssl
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar

from kubestow.apiserver import ControlPlane, Options
from support.polling import PATIENCE

T = TypeVar("T")
TOKEN = "secret-admin-token"


class Client:
    """Talks to a control plane over one kept-alive connection."""

    def __init__(self, plane: "Running", token: str | None = TOKEN) -> None:
        self.token = token
        self._plane = plane
        context = ssl.create_default_context(cafile=str(plane.control_plane.ca))
        self._connection = http.client.HTTPSConnection("127.0.0.1", plane.port, context=context, timeout=PATIENCE)

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def raw(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> http.client.HTTPResponse:
        """Sends a request; the response is not read yet."""
        sent = dict(headers or {})
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        self._connection.request(method, path, body, sent)
        return self._connection.getresponse()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> tuple[int, Any]:
        """Sends a request; returns status and decoded body."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        response = self.raw(method, path, data, {"Content-Type": content_type, "Accept": accept})
        text = response.read()
        if "json" in (response.getheader("Content-Type") or "") and text:
            return response.status, json.loads(text)
        return response.status, text

    def get(self, path: str, **more: str) -> Any:
        """Reads something that must be there."""
        status, body = self.call("GET", path, **more)
        assert status == 200, body
        return body

    def create(self, path: str, body: Any) -> Any:
        """Creates something that must be accepted."""
        status, created = self.call("POST", path, body)
        assert status == 201, created
        return created

    def patch(self, path: str, body: Any, kind: str = "merge-patch+json") -> Any:
        """Patches something that must accept it."""
        status, patched = self.call("PATCH", path, body, content_type=f"application/{kind}")
        assert status in (200, 201), patched
        return patched

    def delete(self, path: str) -> Any:
        """Deletes something that must be there."""
        status, body = self.call("DELETE", path)
        assert status == 200, body
        return body


class Watching:
    """Reads the lines of a watch."""

    def __init__(self, client: Client, path: str, accept: str = "application/json") -> None:
        self.client = client
        self.response = client.raw("GET", path, headers={"Accept": accept})

    @property
    def status(self) -> int:
        """HTTP status of the answer."""
        return self.response.status

    def next(self) -> Any:
        """The next event; None at the end of the stream."""
        line = self.response.readline()
        return json.loads(line) if line else None

    def until(self, found: Callable[[Any], bool]) -> Any:
        """The next event for which `found` holds."""
        while True:
            event = self.next()
            assert event is not None, "the watch ended"
            if found(event):
                return event


class Running:
    """A control plane that runs in a thread."""

    def __init__(self, options: Options) -> None:
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._clients: list[Client] = []
        self.failure: BaseException | None = None
        self.control_plane = ControlPlane(options)
        # Not before: if the options are refused, nothing closes it.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self.failure = error
        finally:
            self._loop.close()
            self._ready.set()

    async def _serve(self) -> None:
        async with self.control_plane:
            self._ready.set()
            await self._stop.wait()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.control_plane.port

    def client(self, token: str | None = TOKEN) -> Client:
        """A new client."""
        client = Client(self, token)
        self._clients.append(client)
        return client

    def watch(self, path: str, accept: str = "application/json") -> Watching:
        """A watch on a connection of its own."""
        return Watching(self.client(), path, accept)

    def inside(self, call: Callable[[], T]) -> T:
        """Runs something in the control plane's own thread."""
        done: threading.Event = threading.Event()
        result: list[Any] = []

        def run() -> None:
            try:
                result.append(call())
            finally:
                done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(PATIENCE)
        value: T = result[0]
        return value

    def until(self, path: str, found: Callable[[Any], bool]) -> Any:
        """Watch until an object at a path exists and meets a condition; return it."""
        watch = self.watch(f"{path}{'&' if '?' in path else '?'}watch=1")
        return watch.until(lambda event: event["type"] != "DELETED" and found(event["object"]))["object"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops it in good order."""
        for client in self._clients:
            client.close()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(PATIENCE)


def run_bare(**options: Any) -> Running:
    """Start a control plane; by default without controllers and kubelets, so that only the test writes."""
    chosen: dict[str, Any] = {"token": TOKEN, "controllers": False, "kubelets": False} | options
    return Running(Options(**chosen))


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    """A small pod."""
    container = {"name": "main", "image": "pause:3.10", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }
