"""Protobuf bodies are decoded to the equivalent JSON."""

from struct import pack

import pytest

from kubestow.apiserver.resources import RESOURCES
from kubestow.apiserver.schema import protobuf
from kubestow.apiserver.schema.reader import struct_named, structs
from kubestow.client.protobuf import MAGIC
from support.apiserver.running import Client

EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
MEDIA = "application/vnd.kubernetes.protobuf"


def field(number: int, value: int | bytes | str) -> bytes:
    """Encode a field."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """Encode an integer."""
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """Encode a request body."""
    return MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, message)


def test_every_field_has_a_number() -> None:
    """Of every type, including inlined messages; except for JSON schema fields that definitions cannot use."""
    numbers = protobuf._numbers()

    def names(message: str) -> set[str]:
        found: set[str] = set()
        for name, mark in numbers[message].values():
            found |= names(name) if mark == "+" else {name}
        return found

    for struct in structs().values():
        known = names(struct.openapi_name) if struct.fields else set()
        missing = set(struct.fields) - known - {"apiVersion", "kind", "dependencies"}
        assert not missing, struct.openapi_name
    assert all(protobuf.struct_for(one.api_version, one.kind) in (one.schema, None) for one in RESOURCES)


def test_a_message_is_decoded() -> None:
    """Strings, numbers, lists, maps, quantities, times, and inlined messages."""
    amount = field(1, "cpu") + field(2, field(1, "100m"))
    port = field(3, 80) + field(4, "TCP")
    probe = field(1, field(2, field(1, "/healthz") + field(2, field(1, 1) + field(3, "http"))))
    container = field(1, "c") + field(2, "i") + field(6, port) + field(8, field(2, amount)) + field(10, probe)
    volume = field(1, "v") + field(2, field(2, b""))
    spec = field(1, volume) + field(2, container) + field(4, -1) + field(11, 1)
    metadata = field(1, "a") + field(8, field(1, 1_700_000_000)) + field(11, field(1, "app") + field(2, "x"))
    assert protobuf.read(struct_named("core.v1", "Pod"), field(1, metadata) + field(2, spec)) == {
        "metadata": {"name": "a", "creationTimestamp": "2023-11-14T22:13:20Z", "labels": {"app": "x"}},
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "resources": {"requests": {"cpu": "100m"}},
                    "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
                }
            ],
            "terminationGracePeriodSeconds": -1,
            "hostNetwork": True,
        },
    }


def test_zero_values_that_go_always_writes_are_dropped() -> None:
    """`tty: false` and `minReadySeconds: 0` are absent; `replicas: 0` and `hostUsers: false` are not."""
    container = field(1, "c") + field(16, 0) + field(18, 1)
    template = field(1, field(7, 0)) + field(2, field(2, container) + field(11, 0) + field(37, 0))
    message = field(2, field(1, 0) + field(3, template) + field(5, 0) + field(7, 0))
    assert protobuf.read(struct_named("apps.v1", "Deployment"), message) == {
        "spec": {
            "replicas": 0,
            "template": {
                "metadata": {},
                "spec": {"containers": [{"name": "c", "tty": True}], "hostUsers": False},
            },
        }
    }


def test_a_body_in_protobuf_creates_an_object(client: Client) -> None:
    """As typed clients send it; the response is JSON."""
    message = field(1, field(1, "made"))
    path = "/api/v1/namespaces"
    status, created = client.call("POST", path, envelope("v1", "Namespace", message), content_type=MEDIA)
    assert (status, created["metadata"]["name"]) == (201, "made")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{}", "missing the prefix"),
        (envelope("v1", "Nothing", b""), "kind 'Nothing' in 'v1' is not supported"),
        (envelope("v1", "Namespace", b"\x0a\x7f"), "is truncated"),
        (envelope("v1", "Namespace", field(1, field(1, b"\xff"))), "not valid UTF-8"),
        (envelope("v1", "Namespace", field(1, 5)), "a number instead of bytes"),
    ],
)
def test_an_invalid_message_is_a_bad_request(client: Client, body: bytes, expected: str) -> None:
    """The 400 response has the reason."""
    status, answer = client.call("POST", "/api/v1/namespaces", body, content_type=MEDIA)
    assert status == 400
    assert expected in answer["message"]


def test_years_have_four_digits() -> None:
    """Also in the zero time of Go."""
    read = protobuf.read(struct_named("coordination.v1", "LeaseSpec"), field(3, field(1, -62_135_596_798)))
    assert read == {"acquireTime": "0001-01-01T00:00:02.000000Z"}


def test_a_schema_is_decoded() -> None:
    """Numbers, values of any type, and fields that are a schema or a boolean."""
    text = field(5, "string")
    maximum = varint(9 << 3 | 1) + pack("<d", 2.5)
    free = field(29, field(1, "free") + field(2, field(30, field(1, 1))))
    held = field(29, field(1, "held") + field(2, field(30, field(1, 0) + field(2, text)) + maximum))
    listed = field(29, field(1, "listed") + field(2, field(24, field(1, text)) + field(20, field(1, "1"))))
    read = protobuf.read(structs()[f"{EXTENSIONS}.JSONSchemaProps"], free + held + listed)
    assert read["properties"] == {
        "free": {"additionalProperties": True},
        "held": {"additionalProperties": {"type": "string"}, "maximum": 2.5},
        "listed": {"items": {"type": "string"}, "enum": [1]},
    }
