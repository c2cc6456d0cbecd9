"""Benchmark of the embedded API server: pod creates and binds per second, and the cost of fan-out to 20 watchers.

The server runs in a process of its own and its CPU time is read from /proc, so that the rates for one core do not
depend on the speed of this client.
"""

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import uvloop

from bench_rows import RATE, Row, micros

TOKEN = "bench"  # noqa: S105
CONNECTIONS = 8
WATCHERS = 20
PODS = 5000
ADDED = b'{"type":"ADDED"'


def pod(number: int) -> bytes:
    """Return a pod like those of the end-to-end benchmark, as JSON."""
    amounts = {"cpu": "100m", "memory": "500Mi"}
    resources = {"requests": amounts, "limits": amounts}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number:06d}", "namespace": "default", "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "pause", "image": "pause:3.10", "resources": resources}]},
    }
    return json.dumps(body).encode()


def binding(name: str) -> bytes:
    """Return a binding of a pod to a node, as JSON."""
    target = {"kind": "Node", "name": "node-0"}
    return json.dumps({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}).encode()


class Server:
    """An API server in a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        config = folder / "kubeconfig"
        command = [sys.executable, "-c", "from kubestow.cli import main; main()", "apiserver", "--port", "0"]
        command += ["--token", TOKEN, "--kubeconfig", str(config), "--no-kubelets", "--controllers=none", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.port = int(line.rsplit(":", 1)[1])

    def cpu(self) -> float:
        """Return the CPU seconds used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Stop the server."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a TLS connection, without verification of the certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return await asyncio.open_connection("127.0.0.1", port, ssl=context, limit=2**24)


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """Return a request as sent on the wire."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send a request and read its response."""
    writer.write(data)
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head[9:12])
    size = int(head.lower().split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
    body = await reader.readexactly(size)
    if status >= 300:
        raise SystemExit(f"{status}: {body[:300]!r}")


async def spread(port: int, requests: list[bytes]) -> None:
    """Send requests over several kept-alive connections, one at a time on each."""

    async def work(share: list[bytes]) -> None:
        reader, writer = await connect(port)
        for data in share:
            await exchange(reader, writer, data)
        writer.close()

    await asyncio.gather(*(work(requests[start::CONNECTIONS]) for start in range(CONNECTIONS)))


async def watch(port: int, count: int, ready: asyncio.Event) -> None:
    """Read a watch until it has delivered `count` pods."""
    reader, writer = await connect(port)
    writer.write(request("GET", "/api/v1/pods?watch=1"))
    await reader.readuntil(b"\r\n\r\n")
    ready.set()
    seen, rest = 0, b""
    while seen < count:
        data = await reader.read(2**20)
        if not data:
            raise SystemExit("a watcher was dropped")
        data = rest + data
        seen += data.count(ADDED)
        rest = data[-len(ADDED) + 1 :]
    writer.close()


async def phase(server: Server, requests: list[bytes]) -> float:
    """Send requests, and return the seconds of the server's CPU for each."""
    cpu = server.cpu()
    await spread(server.port, requests)
    return (server.cpu() - cpu) / len(requests)


async def measure(server: Server, label: str) -> list[Row]:
    """Measure all phases against one server."""
    path = "/api/v1/namespaces/default/pods"
    creates = [request("POST", path, pod(number)) for number in range(PODS)]
    names = [f"p{number:06d}" for number in range(PODS)]
    binds = [request("POST", f"{path}/{name}/binding", binding(name)) for name in names]
    created = await phase(server, creates)
    bound = await phase(server, binds)
    ready = [asyncio.Event() for _ in range(WATCHERS)]
    watchers = [asyncio.create_task(watch(server.port, 2 * PODS, one)) for one in ready]
    await asyncio.gather(*(one.wait() for one in ready))
    watched = await phase(server, [request("POST", path, pod(number)) for number in range(PODS, 2 * PODS)])
    await asyncio.gather(*watchers)
    return [
        rate(f"pod creates: {label}", created),
        rate(f"pod binds: {label}", bound),
        rate(f"pod creates with {WATCHERS} watchers: {label}", watched),
        micros(f"fan-out of an event to a watcher: {label}", (watched - created) / WATCHERS, "CPU"),
    ]


def rate(what: str, seconds: float) -> Row:
    """Return the rate per second of the server's CPU, given the seconds per request."""
    return Row(what, 1 / max(seconds, 1e-9), RATE)


def rows(_full: bool) -> Iterator[Row]:
    """Yield the rows of the section."""
    for label in ("in memory", "on disk"):
        with tempfile.TemporaryDirectory() as folder:
            server = Server(Path(folder), *(("--data-dir", folder) if label == "on disk" else ()))
            try:
                yield from uvloop.run(measure(server, label))
            finally:
                server.stop()
