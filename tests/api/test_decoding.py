"""Decoding of API JSON: unknown fields, nulls, errors, and arbitrary input."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.codec import DecodeError, convert, decode
from kubestow.api.devices import ResourceClaim
from kubestow.api.kinds import KINDS
from kubestow.api.meta import Base
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.workloads import PodDisruptionBudget

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "prod", "labels": {"app": "web"}, "generation": 2},
    "spec": {
        "containers": [
            {"name": "main", "resources": {"requests": {"cpu": "1", "memory": 5}}, "ports": [{"hostPort": 80}]}
        ],
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "priority": 7,
    },
    "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]},
}

field_names = st.sampled_from(
    ["metadata", "spec", "status", "name", "labels", "containers", "resources", "requests", "affinity", "values", "key"]
)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
any_json = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(field_names | st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)
kinds = st.sampled_from(sorted(KINDS.values(), key=lambda kind: kind.__name__))


def decoded_or_refused(kind: type[Base], data: bytes) -> None:
    try:
        decoded = decode(kind, data)
    except DecodeError:
        return
    assert isinstance(decoded, kind)


@given(kinds, any_json)
def test_any_json_is_an_object_or_an_error(kind: type[Base], value: Any) -> None:
    """Any JSON is decoded to an object of the kind or raises DecodeError."""
    decoded_or_refused(kind, json.dumps(value).encode())


@given(kinds, st.binary(max_size=40))
def test_any_bytes_are_an_object_or_an_error(kind: type[Base], data: bytes) -> None:
    """Bytes that are not JSON raise DecodeError, too."""
    decoded_or_refused(kind, data)


@given(st.data(), any_json)
def test_a_pod_with_arbitrary_parts_is_a_pod_or_an_error(data: st.DataObject, value: Any) -> None:
    """Any part of the pod is replaced by any value."""
    pod = json.loads(json.dumps(POD))
    node: Any = pod
    for _ in range(data.draw(st.integers(0, 6))):
        place = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        if not isinstance(node[place], dict | list) or not node[place]:
            break
        node = node[place]
    node[data.draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))] = value
    decoded_or_refused(Pod, json.dumps(pod).encode())


@given(st.data())
def test_nulls_count_as_absent(data: st.DataObject) -> None:
    """A null anywhere in an object means that the field is not set."""

    def with_nulls(value: Any) -> Any:
        if isinstance(value, dict):
            added = data.draw(st.sets(field_names, max_size=2)) - value.keys()
            return {k: with_nulls(v) for k, v in value.items()} | dict.fromkeys(added)
        return [with_nulls(v) for v in value] if isinstance(value, list) else value

    strange = {"spec": {"containers": [{"resources": {"requests": {}}}], "affinity": {}}, "metadata": {"labels": {}}}
    assert decode(Pod, json.dumps(with_nulls(strange)).encode()) == convert(Pod, strange)
    assert decode(Pod, json.dumps(with_nulls(POD)).encode()) == convert(Pod, POD)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.__name__)
def test_an_empty_object_has_all_defaults(kind: type[Base]) -> None:
    """Every field of every kind has a default, which null selects, too."""
    nulls = dict.fromkeys(field.encode_name for field in msgspec.structs.fields(kind) if field.name != "source")
    for data in (b"{}", json.dumps(nulls).encode(), b'{"somethingNew": {"deep": [1]}}'):
        decoded = decode(kind, data)
        assert all(getattr(decoded, name) == getattr(kind(), name) for name in nulls)


def test_fields_are_read() -> None:
    """Fields have the names of the API."""
    pod = decode(Pod, json.dumps(POD).encode())
    assert pod.key == "prod/web"
    assert pod.spec.containers[0].resources.requests == {"cpu": "1", "memory": 5}
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.podAffinity is not None
    assert pod.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey == "zone"
    assert pod.spec.priority == 7
    assert pod.status.conditions[0].status == "False"


def test_the_error_names_the_field() -> None:
    """A value of the wrong type is reported with its path."""
    with pytest.raises(DecodeError, match=r"not a valid Pod: .*`int \| null`, got `str` - at `\$\.spec\.priority`"):
        decode(Pod, b'{"spec": {"priority": "high"}}')


@pytest.mark.parametrize("data", [b"", b"{", b'{"spec": {"priority": "x"}', b"\xff\xfe", b'{"a": ' + b"[" * 100_000])
def test_broken_json_is_an_error(data: bytes) -> None:
    """Truncated, undecodable or endlessly nested input raises DecodeError."""
    with pytest.raises(DecodeError):
        decode(Pod, data)


def test_trees_without_json_representation_are_an_error() -> None:
    """A YAML file may describe a set, or a list that contains itself."""
    endless: list[Any] = []
    endless.append(endless)
    for value in ({"spec": object()}, {"spec": endless}):
        with pytest.raises(DecodeError, match="JSON"):
            convert(Node, value)


@pytest.mark.parametrize("kind", [PersistentVolume, PersistentVolumeClaim, ResourceClaim])
def test_updated_kinds_keep_their_complete_json(
    kind: type[PersistentVolume | PersistentVolumeClaim | ResourceClaim],
) -> None:
    """An update must not lose the fields that are not read."""
    data = b'{"metadata": {"name": "a"}, "spec": {"unknown": [1, 2]}, "status": null}'
    decoded = decode(kind, data)
    assert bytes(decoded.source) == data
    assert decoded.metadata.name == "a"


def test_raw_fields_survive_the_removal_of_nulls() -> None:
    """Fields that stay undecoded are kept if nulls elsewhere are removed."""
    config = [{"opaque": {"driver": "d", "parameters": {"size": 3}}}]
    claim = convert(ResourceClaim, {"metadata": {"labels": None}, "spec": {"devices": {"config": config}}})
    opaque = claim.spec.devices.config[0].opaque
    assert opaque is not None
    assert json.loads(bytes(opaque.parameters)) == {"size": 3}


def test_null_times_of_disrupted_pods_are_kept_or_dropped_without_error() -> None:
    """This is the only map whose values may be null."""
    budget = decode(PodDisruptionBudget, b'{"status": {"disruptedPods": {"a": null, "b": "2026-01-01T00:00:00Z"}}}')
    assert budget.status.disruptedPods["b"] == "2026-01-01T00:00:00Z"
