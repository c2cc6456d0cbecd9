"""Targets: code that reads external input. Each takes any bytes, and may reject them only with its documented errors.

A target never raises an exception: the documented errors are caught here by name.
"""

import asyncio
import atexit
import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple, cast

import yaml
from msgspec.structs import replace

from kubestow import config
from kubestow.api import codec, quantity
from kubestow.api.cel.errors import CelError
from kubestow.api.cel.selectors import Device, Selector
from kubestow.api.devices import Device as ModelDevice
from kubestow.api.failures import BadAnswerError, TransportError
from kubestow.api.files import ObjectsError, decode
from kubestow.api.files.manifests import manifests
from kubestow.api.files.sources import Source
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.client.connection import Connection as ClientConnection
from kubestow.client.errors import CredentialsError
from kubestow.client.kubeconfig import load_kubeconfig
from kubestow.client.lists import Lister
from kubestow.client.resources import NODES, PODS, WATCHED
from kubestow.client.watchlines import LineDecoder
from kubestow.config import configuration, policy
from kubestow.config.problems import ConfigError
from kubestow.scheduler.extenders.answers import (
    AnswerDecoder,
    BindingResult,
    FilterResult,
    HostPriority,
    PreemptionResult,
)
from kubestow.scheduler.extenders.extender import Call, Extender, ExtenderError
from kubestow.server.http.connection import Connection
from kubestow.server.http.limits import Limits
from kubestow.server.http.messages import Request, Response
from kubestow.simulator.recording.files import read as read_recording
from kubestow.simulator.scenario import reading
from kubestow.simulator.scenario.example import EXAMPLE
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.apiserver.direct import Direct
from support.apiserver.seeds import SEEDS
from support.integration.cluster import node, pod

Run = Callable[[bytes], None]


class Target(NamedTuple):
    """A reader of input, and valid inputs."""

    run: Run
    seeds: list[bytes]


def _json(*trees: Any) -> list[bytes]:
    return [json.dumps(tree).encode() for tree in trees]


def _file(name: str) -> Path:
    return Path(mkdtemp(prefix="fuzz-")) / name


# Responses of API servers to the scheduler


def _watched(data: bytes) -> None:
    for kind in (one for one in WATCHED if one.plural in ("pods", "nodes", "resourceclaims", "resourceslices")):
        with suppress(BadAnswerError):
            LineDecoder(kind.kind).feed(data + b"\n")


_LISTERS: tuple[Lister[Any], ...] = (Lister(cast("Any", None), PODS), Lister(cast("Any", None), NODES))


def _listed(data: bytes) -> None:
    for lister in _LISTERS:
        with suppress(BadAnswerError):
            lister._decode(data, [], [])


def _objects() -> list[dict[str, Any]]:
    return [
        {"apiVersion": BY_STORAGE[storage].api_version, "kind": BY_STORAGE[storage].kind, "metadata": {"name": "a"}}
        | json.loads(json.dumps(tree))
        for storage, tree in SEEDS.items()
    ]


def _whole_pod() -> dict[str, Any]:
    """Return a pod with all fields that a scheduler reads."""
    spec: dict[str, Any] = json.loads(json.dumps(SEEDS["pods"]["spec"]))
    return pod("p") | {"spec": spec | {"nodeSelector": {"disk": "ssd"}, "priority": 5}}


class _Scheduling:
    """A scheduler that receives one odd object after the other, and must still place valid pods."""

    def __init__(self) -> None:
        self._count = 0
        self._fresh()
        atexit.register(lambda: self._harness.close())

    def _fresh(self) -> None:
        self._harness = SchedulerHarness()
        self._harness.cluster.add(make_node("good", cpu="1000", pods="100000"))

    def __call__(self, data: bytes) -> None:
        self._count += 1
        if self._count % 200 == 0:
            self._harness.close()
            self._fresh()
        objects = []
        for kind in (PODS.kind, NODES.kind):
            with suppress(codec.DecodeError):
                obj = codec.decode(kind, data)
                metadata = replace(obj.metadata, name=f"odd-{self._count}", uid=f"odd-{self._count}")
                objects.append(replace(obj, metadata=metadata))
        for obj in objects:
            self._harness.cluster.add(obj)
        name = f"good-{self._count}"
        self._harness.cluster.add(make_pod(name, cpu="1m"))
        self._harness.run_for(1.0)
        assert self._harness.cluster.node_of(name), f"{name} was not placed beside {data[:200]!r}"
        for obj in objects:
            self._harness.cluster.delete(obj, 0)


@cache
def _scheduler() -> _Scheduling:
    return _Scheduling()


def _scheduling(data: bytes) -> None:
    _scheduler()(data)


# Bytes on connections


class _Wire(asyncio.Transport):
    """A transport that discards all writes."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def write(self, data: Any) -> None: ...
    def writelines(self, list_of_data: Any) -> None: ...
    def abort(self) -> None:
        self.closed = True

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def can_write_eof(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...
    def get_write_buffer_size(self) -> int:
        return 0


@contextmanager
def _loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = _LOOPS[0] if _LOOPS else asyncio.new_event_loop()
    if not _LOOPS:
        _LOOPS.append(loop)
    asyncio._set_running_loop(loop)
    try:
        yield loop
    finally:
        asyncio._set_running_loop(None)


_LOOPS: list[asyncio.AbstractEventLoop] = []


def _requested(data: bytes) -> None:
    def answer(request: Request, connection: Connection) -> None:
        connection.respond(Response(200, request.body[:100]))

    with _loop():
        connection = Connection(answer, Limits(), set(), lambda _: True)
        wire = _Wire()
        connection.connection_made(wire)
        for start in range(0, len(data), 97):
            if not wire.closed:
                connection.data_received(data[start : start + 97])
        connection.connection_lost(None)


def _answered(data: bytes) -> None:
    with _loop() as loop:
        connection = ClientConnection(loop, largest_answer=1 << 20)
        wire = _Wire()
        connection.connection_made(wire)
        answer = connection.exchange((b"GET / HTTP/1.1\r\n\r\n",), loop.time() + 60)
        for start in range(0, len(data), 97):
            if not wire.closed:
                connection.data_received(data[start : start + 97])
        connection.connection_lost(None)
        assert answer.done()
        assert isinstance(answer.exception(), TransportError | None)


class _Served:
    """The embedded API server: the body of a request as JSON, patch or YAML, for create, update or apply."""

    def __init__(self) -> None:
        self._count = 0
        self._direct: Direct | None = None

    def __call__(self, data: bytes) -> None:
        with _loop():
            if self._direct is None or self._count % 500 == 0:
                self._direct = Direct()
            self._count += 1
            method, path, kind = _REQUESTS[self._count % len(_REQUESTS)]
            wire = self._direct.send(method, path, data, kind)
        assert wire.response is not None
        assert wire.response.status < 500, wire.response.body


_PODS = "/api/v1/namespaces/default/pods"
_REQUESTS = (
    ("POST", _PODS, "application/json"),
    ("POST", "/api/v1/nodes", "application/json"),
    ("POST", "/apis/apps/v1/namespaces/default/deployments", "application/json"),
    ("POST", "/apis/resource.k8s.io/v1/resourceslices", "application/json"),
    ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json"),
    ("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "application/json"),
    ("PATCH", f"{_PODS}/a", "application/merge-patch+json"),
    ("PATCH", f"{_PODS}/a", "application/json-patch+json"),
    ("PATCH", f"{_PODS}/a", "application/strategic-merge-patch+json"),
    ("PATCH", f"{_PODS}/a?fieldManager=f", "application/apply-patch+yaml"),
    ("PUT", f"{_PODS}/a", "application/json"),
    ("POST", f"{_PODS}/a/binding", "application/json"),
    ("POST", _PODS, "application/vnd.kubernetes.protobuf"),
    ("DELETE", f"{_PODS}/a", "application/json"),
)


# Files


def _configured(data: bytes) -> None:
    with suppress(ConfigError):
        config.load(data.decode("utf-8", "replace"))


def _policy(data: bytes) -> None:
    with suppress(ConfigError):
        policy.load(data.decode("utf-8", "replace"))


def _read_kubeconfig(data: bytes) -> None:
    _KUBECONFIG.write_bytes(data)
    with suppress(CredentialsError):
        load_kubeconfig([str(_KUBECONFIG)])


def _read_objects(data: bytes) -> None:
    with suppress(ObjectsError):
        decode(manifests(Source("objects", data.decode("utf-8", "replace"))))


def _read_scenario(data: bytes) -> None:
    _SCENARIO.write_bytes(data)
    with suppress(ObjectsError):
        reading.read([str(_SCENARIO)])


def _read_recording(data: bytes) -> None:
    _RECORDING.write_bytes(gzip.compress(data, 1) if data[:2] != b"\x1f\x8b" else data)
    with suppress(ObjectsError):
        read_recording(_RECORDING)


_KUBECONFIG, _SCENARIO, _RECORDING = _file("kubeconfig"), _file("scenario.yaml"), _file("recording")

# Extenders and expressions

_EXTENDER = Extender(0, configuration.Extender(urlPrefix="http://127.0.0.1"))
_ANSWERS = tuple(AnswerDecoder(kind) for kind in (FilterResult, list[HostPriority], PreemptionResult, BindingResult))


def _extended(data: bytes) -> None:
    for decoder in _ANSWERS:
        with suppress(ExtenderError):
            decoder.decode(Call(_EXTENDER, "filter", ()), data)


def _expressed(data: bytes) -> None:
    with suppress(CelError):
        Selector(data.decode("utf-8", "replace")).matches(_DEVICE)


_DEVICE = Device("d", codec.convert(ModelDevice, {"name": "a", "attributes": {"model": {"string": "x"}}}))


def _amount(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    with suppress(quantity.QuantityError):
        quantity.value(text)
        quantity.milli(text)
        quantity.canonical(text)


_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 4
leaderElection: {leaderElect: true, leaseDuration: 15s}
clientConnection: {qps: 50.0, burst: 100}
profiles:
- schedulerName: a
  plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 5}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}]}
extenders: [{urlPrefix: 'http://127.0.0.1/', filterVerb: filter, httpTimeout: 5s}]
"""
_POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [{"name": "PodFitsHost"}, {"name": "L", "argument": {"labelsPresence": {"labels": ["a"]}}}],
    "priorities": [{"name": "LeastRequestedPriority", "weight": 1}],
    "extenders": [{"urlPrefix": "http://127.0.0.1", "filterVerb": "f", "enableHttps": False}],
}
_ACCESS = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", "insecure-skip-tls-verify": True}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}
_HTTP = [
    b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /x?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
]
_ANSWERED = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
]
_EXPRESSIONS = [
    b'device.driver == "d" && device.attributes["d"].model.startsWith("x")',
    b'device.capacity["d"].memory.compareTo(quantity("1Gi")) >= 0',
    b'[1, 2, 3].exists(x, x > 2) || {"a": 1}.all(k, v, v == 1)',
    b'semver("1.2.3").isGreaterThan(semver("1.0.0")) && cel.bind(x, 5, x + x == 10)',
    b'"a,b".split(",").map(x, x.matches("^[a-z]+$")).size() == 2 && ip("10.0.0.1").family() == 4',
    b'device.attributes["d"].?model.orValue("y") == "x" ? true : duration("1h") > duration("1m")',
]


def _lines(trees: list[dict[str, Any]]) -> list[bytes]:
    return _json(*({"type": kind, "object": tree} for tree in trees for kind in ("ADDED", "BOOKMARK", "ERROR")))


_WHOLE = [_whole_pod(), pod("p"), node("n", zone="a")]
_RECORD = b"\n".join(
    _json(
        {"kubestow": "recording", "version": 1},
        {"time": 1.0, "op": "begin"},
        {"time": 1.0, "op": "put", "object": _WHOLE[0]},
        {"time": 2.0, "op": "delete", "object": _WHOLE[0]},
    )
)
_FOREIGN = _json(
    {"pods": [_WHOLE[1]], "nodes": [_WHOLE[2]], "pvs": [], "storageClasses": []},
    {"time": "2026-01-01T00:00:00Z", "event": "Add", "resource": _WHOLE[1]},
    {
        "kind": "ResourcePatch",
        "apiVersion": "action.kwok.x-k8s.io/v1alpha1",
        "resource": {"version": "v1", "resource": "pods"},
        "target": {"name": "p", "namespace": "default"},
        "durationNanosecond": 5,
        "method": "patch",
        "template": {"status": {"phase": "Running"}},
    },
    {"apiVersion": "simon/v1alpha1", "kind": "Config", "spec": {"cluster": {"customConfig": "nowhere"}}},
)
_EXTENDED = _json(
    {"NodeNames": ["a"], "FailedNodes": {"b": "full"}, "Error": ""},
    [{"Host": "a", "Score": 5}],
    {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 0}}},
)

TARGETS: dict[str, Target] = {
    "watch lines": Target(_watched, _lines([*_WHOLE, *_objects()])),
    "lists": Target(_listed, _json({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": _WHOLE})),
    "objects in the scheduler": Target(_scheduling, _json(*_WHOLE)),
    "HTTP requests": Target(_requested, _HTTP),
    "HTTP answers": Target(_answered, _ANSWERED),
    "API requests": Target(_Served(), _json(*_objects(), [{"op": "add", "path": "/spec/x", "value": 1}])),
    "configuration": Target(_configured, [_CONFIG.encode(), *_json(yaml.safe_load(_CONFIG))]),
    "Policy": Target(_policy, _json(_POLICY)),
    "kubeconfig": Target(_read_kubeconfig, [yaml.safe_dump(_ACCESS).encode(), *_json(_ACCESS)]),
    "object files": Target(_read_objects, [yaml.safe_dump_all(_WHOLE).encode(), *_json(*_objects())]),
    "scenarios": Target(_read_scenario, [EXAMPLE.encode(), *_FOREIGN, *_json(*yaml.safe_load_all(EXAMPLE))]),
    "recordings": Target(_read_recording, [_RECORD, gzip.compress(_RECORD, mtime=0)]),
    "extender answers": Target(_extended, _EXTENDED),
    "CEL": Target(_expressed, _EXPRESSIONS),
    "quantities": Target(_amount, [b"1", b"100m", b"1.5Gi", b"12e3", b"9223372036854775807", b"-1n"]),
}
