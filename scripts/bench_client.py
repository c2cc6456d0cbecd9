"""Benchmark of the API client's CPU time: one small POST, compared with aiohttp, and one watch event.

The server runs in a process of its own (this file, run with `--serve FOLDER`), so that only the client's time is
counted.
"""

import asyncio
import contextlib
import ipaddress
import json
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import aiohttp
import httptools
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bench_rows import MICROS, Row
from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod
from kubestow.client.access import Access, open_channel
from kubestow.client.api import ApiClient
from kubestow.client.informer import Informer
from kubestow.client.reflector import Reflector
from kubestow.client.refusals import Refusals
from kubestow.client.requests import Requests
from kubestow.client.resources import PODS
from kubestow.client.tls import TlsSettings
from kubestow.client.writes import LiveApi
from kubestow.clock import SystemClock

EVENTS = 20_000
REQUESTS = 10_000
CONCURRENCY = 16
ANSWER = json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}).encode()
HEAD = (
    b"HTTP/1.1 201 Created\r\nAudit-Id: 6a5c2a0c-7d1c-4f3c-9c35-0a4a8a4b7c11\r\nCache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\nX-Kubernetes-Pf-Flowschema-Uid: 8a1f3c52-8f0e-4b21-9a51-0b5f6b1d7c01\r\n"
    b"X-Kubernetes-Pf-Prioritylevel-Uid: 1d0c6f3e-5c51-4a3e-8c57-3f8f5d1f0c02\r\n"
    b"Date: Sun, 15 Nov 2026 06:12:30 GMT\r\nContent-Length: %d\r\n\r\n" % len(ANSWER)
)


def pod(number: int) -> dict[str, object]:
    """Return a pod of about 3 KB, most of it fields that the scheduler does not read."""
    managed: dict[str, object] = {f"f:field{n}": {"f:a": {}, "f:b": {}, ".": {}} for n in range(40)}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "uid": f"c9ba3829-a13a-4b8c-af33-{number:012d}",
            "resourceVersion": str(number + 10),
            "creationTimestamp": "2026-11-15T06:12:30Z",
            "labels": {"app": "web", "tier": "front", "pod-template-hash": "5d4f8c7b9"},
            "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": managed}],
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/web:1.2.3",
                    "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}, "limits": {"memory": "200Mi"}},
                    "volumeMounts": [{"name": "token", "readOnly": True, "mountPath": "/var/run/secrets"}],
                }
            ],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            "schedulerName": "default-scheduler",
            "priority": 0,
        },
        "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False", "lastProbeTime": None}]},
    }


class Peer(asyncio.Protocol):
    """The server: responds with a Status to every POST, and with a stream of pods to a GET."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio's without being of its classes.
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        if self._parser.get_method() == b"POST":
            self._transport.write(HEAD + ANSWER)
        else:
            self._transport.write(STREAM)


def chunk(kind: str, obj: object) -> bytes:
    line = json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"
    return b"%x\r\n%b\r\n" % (len(line), line)


STREAM = b""


async def serve(folder: Path) -> None:
    global STREAM
    marked = {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}
    STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk("BOOKMARK", marked)
    STREAM += b"".join(chunk("ADDED", pod(number)) for number in range(EVENTS))
    loop = asyncio.get_running_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    plain = await loop.create_server(Peer, "127.0.0.1", 0)
    secure = await loop.create_server(Peer, "127.0.0.1", 0, ssl=context)
    print(plain.sockets[0].getsockname()[1], secure.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


def make_certificate(folder: Path) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bench")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(pem + private)
    return pem


@contextlib.contextmanager
def server() -> Iterator[tuple[int, int, bytes]]:
    with tempfile.TemporaryDirectory() as name:
        ca = make_certificate(Path(name))
        process = subprocess.Popen([sys.executable, __file__, "--serve", name], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            plain, secure = process.stdout.readline().split()
            yield int(plain), int(secure), ca
        finally:
            process.kill()
            process.wait()


async def cpu_per_call(call: Callable[[], Awaitable[object]], count: int) -> float:
    """Return the microseconds of this process's CPU time per call, with several calls at a time, after a warm-up."""

    async def worker(calls: int) -> None:
        for _ in range(calls):
            await call()

    await asyncio.gather(*(worker(20) for _ in range(CONCURRENCY)))
    started = time.process_time()
    await asyncio.gather(*(worker(count // CONCURRENCY) for _ in range(CONCURRENCY)))
    return (time.process_time() - started) / (count // CONCURRENCY * CONCURRENCY) * 1e6


async def bench_ours(url: str, ca: bytes, count: int) -> float:
    access = Access("bench", url, tls=TlsSettings(ca_data=ca))
    channel = open_channel(access, environ={}, clock=SystemClock())
    api = LiveApi(Requests(ApiClient(channel, user_agent="kubestow/bench")), lambda: True)
    pod = Pod(ObjectMeta(name="pod-1", namespace="default", uid="c9ba3829-a13a-4b8c-af33-33f898604776"))
    result = await cpu_per_call(lambda: api.bind(pod, "node-1"), count)
    channel.close()
    return result


async def bench_aiohttp(url: str, ca: bytes, count: int) -> float:
    body = {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": "pod-1", "namespace": "default", "uid": "c9ba3829-a13a-4b8c-af33-33f898604776"},
        "target": {"kind": "Node", "name": "node-1"},
    }
    context = ssl.create_default_context(cadata=ca.decode())
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:

        async def call() -> bytes:
            async with session.post(f"{url}/api/v1/namespaces/default/pods/pod-1/binding", json=body) as response:
                return await response.read()

        return await cpu_per_call(call, count)


class Counter:
    def __init__(self) -> None:
        self.count = 0
        self.started = 0.0
        self.result = asyncio.get_running_loop().create_future()

    def on_add(self, obj: Pod) -> None:  # noqa: ARG002
        self.count += 1
        if self.count == EVENTS:
            self.result.set_result(time.process_time() - self.started)

    def on_update(self, old: Pod, new: Pod) -> None: ...
    def on_delete(self, obj: Pod) -> None: ...

    def on_access(self, _problem: str) -> None:
        self.started = time.process_time()


async def watch(url: str, ca: bytes) -> float:
    access = Access("bench", url, tls=TlsSettings(ca_data=ca))
    channel = open_channel(access, environ={}, clock=SystemClock())
    counter = Counter()
    client = ApiClient(channel, user_agent="kubestow/bench")
    task = asyncio.create_task(Reflector(client, Informer(PODS, counter), lambda: 0.5, Refusals()).run())
    seconds: float = await counter.result
    task.cancel()
    channel.close()
    return seconds / EVENTS * 1e6


def rows(_full: bool) -> Iterator[Row]:
    """Yield the rows of the section."""
    size = len(chunk("ADDED", pod(1)))
    with server() as (plain, secure, ca):
        for named, url in (("plain", f"http://127.0.0.1:{plain}"), ("TLS", f"https://127.0.0.1:{secure}")):
            mine, theirs = (uvloop.run(client(url, ca, REQUESTS)) for client in (bench_ours, bench_aiohttp))
            yield Row(f"one small POST: {named}", mine, MICROS, "CPU")
            yield Row(f"the same with aiohttp: {named}", theirs, MICROS, "CPU")
            event = uvloop.run(watch(url, ca))
            yield Row(f"one watch event of {size} bytes: {named}", event, MICROS, "CPU; decoded and stored")


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[2])))
