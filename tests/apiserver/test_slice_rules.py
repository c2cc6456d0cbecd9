"""Rules of devices in slices and of device taint rules, with the messages of kube-apiserver."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.config.features import Features
from support.apiserver.running import Client, Running

RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
POOL = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
EVERYWHERE = {"perDeviceNodeSelection": True}
TAINT = {"key": "broken", "effect": "NoSchedule"}
CONSUMED = {"counterSet": "s", "counters": {"c": {"value": "1"}}}


def a_slice(device: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a slice with one device, by default on a node."""
    place = {} if spec else {"nodeName": "node-1"}
    devices = [{"name": "a", **device}]
    return {
        "metadata": {"name": "s"},
        "spec": {"driver": "gpu.example.com", "pool": POOL, "devices": devices, **place, **spec},
    }


def shared(capacity: str = "4", **policy: Any) -> dict[str, Any]:
    """Return a device with shared memory."""
    return {"allowMultipleAllocations": True, "capacity": {"m": {"value": capacity, "requestPolicy": policy}}}


def causes(client: Client, made: dict[str, Any], path: str = SLICES) -> list[tuple[str, str]]:
    """Return field and message of each cause."""
    status, refused = client.call("POST", path, made)
    assert (status, refused["reason"]) == (422, "Invalid"), refused
    return [(cause["field"], cause["message"]) for cause in refused["details"]["causes"]]


@pytest.mark.parametrize(
    ("device", "field", "message"),
    [
        ({"nodeName": "n"}, "", "Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if"),
        ({"attributes": {"9x": {"int": 1}}}, ".attributes", 'Invalid value: "9x": a valid C identifier must start'),
        ({"attributes": {"x" * 33: {"int": 1}}}, ".attributes", "Too long: may not be more than 32 bytes"),
        ({"attributes": {"x": {"ints": [1]}}}, ".attributes[x]", 'Invalid value: "": must specify one of: `int`'),
        ({"capacity": {"a b": {"value": "1"}}}, ".capacity", 'Invalid value: "a b": a valid C identifier must start'),
        (
            {
                "attributes": {f"a{number}": {"int": 1} for number in range(20)},
                "capacity": {f"c{number}": {"value": "1"} for number in range(13)},
            },
            "",
            "Invalid value: 33: the total number of attributes and capacities must not exceed 32",
        ),
        ({"taints": [{**TAINT, "key": "a b"}]}, ".taints[0].key", 'Invalid value: "a b": name part must consist of'),
        ({"taints": [{**TAINT, "value": "a b"}]}, ".taints[0].value", 'Invalid value: "a b": a valid label must be'),
        ({"taints": [{**TAINT, "effect": "No"}]}, ".taints[0].effect", 'Unsupported value: "No": supported values:'),
        ({"taints": [{"key": "broken"}]}, ".taints[0].effect", "Required value"),
        ({"taints": [TAINT] * 17}, ".taints", "Too many: 17: must have at most 16 items"),
        ({"consumesCounters": [{**CONSUMED, "counters": {}}]}, ".consumesCounters[0].counters", "Required value"),
        ({"consumesCounters": [{**CONSUMED, "counterSet": ""}]}, ".consumesCounters[0].counterSet", "Required value"),
        (
            {"consumesCounters": [{**CONSUMED, "counterSet": f"s{number}"} for number in range(3)]},
            ".consumesCounters",
            "Too many: 3: must have at most 2 items",
        ),
        (
            {"consumesCounters": [CONSUMED, CONSUMED]},
            ".consumesCounters[1]",
            'Duplicate value: "s"',
        ),
        (
            {"bindingConditions": ["ready"]},
            ".bindingFailureConditions",
            "Invalid value: null: bindingFailureConditions are required to use bindingConditions",
        ),
        (
            {"bindingFailureConditions": ["failed"]},
            ".bindingConditions",
            "Invalid value: null: bindingConditions are required to use bindingFailureConditions",
        ),
        (
            {"bindingConditions": ["ready"], "bindingFailureConditions": ["ready"]},
            ".bindingFailureConditions[0]",
            'Invalid value: "ready": bindingFailureConditions must not overlap with bindingConditions',
        ),
        (
            {"bindingConditions": ["a", "a"], "bindingFailureConditions": ["b"]},
            ".bindingConditions[1]",
            'Duplicate value: "a"',
        ),
        (
            {"bindingConditions": list("abcde"), "bindingFailureConditions": ["f"]},
            ".bindingConditions",
            "Too many: 5: must have at most 4 items",
        ),
    ],
)
def test_an_invalid_device_is_rejected(client: Client, device: dict[str, Any], field: str, message: str) -> None:
    """Nodes, attributes, consumed counters and binding conditions are checked."""
    ((where, found),) = causes(client, a_slice(device))
    assert where == f"spec.devices[0]{field}"
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("device", "field", "message"),
    [
        ({}, "", "Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when"),
        (
            {"nodeName": "n", "allNodes": True},
            "",
            'Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, or',
        ),
        ({"nodeName": "N"}, ".nodeName", 'Invalid value: "N": a lowercase RFC 1123 subdomain'),
        (
            {"nodeName": "n", "allNodes": False},
            ".allNodes",
            "Invalid value: false: must be either unset or set to true",
        ),
    ],
)
def test_each_device_selects_nodes_if_the_slice_does_not(
    client: Client, device: dict[str, Any], field: str, message: str
) -> None:
    """By node name, by node selector, or all nodes."""
    ((where, found),) = causes(client, a_slice(device, **EVERYWHERE))
    assert where == f"spec.devices[0]{field}"
    assert found.startswith(message)
    client.create(SLICES, a_slice({"nodeName": "n"}, **EVERYWHERE))


@pytest.mark.parametrize(
    ("device", "field", "message"),
    [
        ({**shared(default="1"), "allowMultipleAllocations": False}, "", "Forbidden: allowMultipleAllocations must be"),
        (shared(validValues=["1"]), ".default", "Required value: required when validValues is defined"),
        (shared(validRange={"min": "1"}), ".default", "Required value: required when validRange is defined"),
        (
            shared(default="1", validValues=["1"], validRange={"min": "1"}),
            "",
            'Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" at the',
        ),
        (shared(default="1", validValues=["2", "1"]), ".validValues[1]", 'Invalid value: "1": values must be sorted'),
        (shared(default="3", validValues=["1"]), ".validValues", 'Invalid value: "3": default value is not valid'),
        (shared(default="1", validValues=["1", "5"]), ".validValues[1]", 'Invalid value: "5": option is larger than'),
        (shared(default="5", validRange={"min": "5"}), ".validRange.min", 'Invalid value: "5": min is larger than'),
        (shared(default="0", validRange={"min": "1"}), ".validRange.default", 'Invalid value: "0": default is less'),
        (
            shared(default="4", validRange={"min": "1", "max": "3"}),
            ".validRange.default",
            'Invalid value: "4": default is more than max: 3',
        ),
        (
            shared(default="2", validRange={"min": "1", "max": "5"}),
            ".validRange.max",
            'Invalid value: "5": max is larger than capacity value: 4',
        ),
        (
            shared(default="2", validRange={"min": "1", "step": "0"}),
            ".validRange.step",
            'Invalid value: "0": must be greater than zero',
        ),
        (
            shared(default="2", validRange={"min": "1", "max": "3", "step": "2"}),
            ".validRange.step",
            'Invalid value: "2": value is not a multiple of a given step (2) from (1)',
        ),
        (
            shared(default="1", validRange={"min": "1", "step": "4"}),
            ".validRange.step",
            'Invalid value: "4": one step 5 is larger than capacity value: 4',
        ),
    ],
)
def test_an_invalid_request_policy_is_rejected(
    client: Client, device: dict[str, Any], field: str, message: str
) -> None:
    """It has values or a range with steps, within the capacity, and a default among them."""
    ((where, found),) = causes(client, a_slice(device))
    assert where == f"spec.devices[0].capacity[m].requestPolicy{field}"
    assert found.startswith(message)


def test_a_range_without_a_minimum_is_rejected_once(client: Client) -> None:
    """By the schema."""
    ((where, found),) = causes(client, a_slice(shared(default="1", validRange={"max": "2"})))
    assert (where.rpartition(".")[2], found) == ("min", "Required value")


def test_counter_sets_need_named_counters(client: Client) -> None:
    """Each set has at least one counter."""
    made = a_slice({})
    del made["spec"]["devices"]
    made["spec"]["sharedCounters"] = [
        {"name": "a", "counters": {}},
        {"name": "b", "counters": {"C": {"value": "1"}}},
        {"name": "c", "counters": {f"c{number}": {"value": "1"} for number in range(33)}},
    ]
    assert [(where, found[:14]) for where, found in causes(client, made)] == [
        ("spec.sharedCounters[0].counters", "Required value"),
        ("spec.sharedCounters[1].counters", "Invalid value:"),
        ("spec.sharedCounters[2].counters", "Too many: 33: "),
    ]


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"taint": {"key": "a b", "effect": "None"}}, "spec.taint.key", 'Invalid value: "a b": name part must'),
        ({"taint": {"key": "a"}}, "spec.taint.effect", "Required value"),
        ({"deviceSelector": {"driver": "a b"}}, "spec.deviceSelector.driver", 'Invalid value: "a b": a lowercase'),
        ({"deviceSelector": {"pool": "a/"}}, "spec.deviceSelector.pool", "Required value"),
        ({"deviceSelector": {"device": "a.b"}}, "spec.deviceSelector.device", 'Invalid value: "a.b": a lowercase'),
    ],
)
def test_an_invalid_taint_rule_is_rejected(client: Client, spec: dict[str, Any], field: str, message: str) -> None:
    """Its selector has valid names, and its taint is valid."""
    ((where, found),) = causes(client, {"metadata": {"name": "r"}, "spec": {"taint": TAINT, **spec}}, RULES)
    assert where == field
    assert found.startswith(message)


def test_a_taint_rule_has_a_status_subresource(client: Client) -> None:
    """A controller reports the effect there."""
    rule = {"metadata": {"name": "r"}, "spec": {"taint": TAINT}}
    made = client.create(RULES, {**rule, "status": {"conditions": []}})
    assert "status" not in made
    condition = {"type": "Done", "status": "True", "reason": "a", "message": "", "lastTransitionTime": None}
    found = client.patch(f"{RULES}/r/status", {"status": {"conditions": [condition]}}, "merge-patch+json")
    assert [one["type"] for one in found["status"]["conditions"]] == ["Done"]


def test_a_taint_rule_is_served_in_two_versions(client: Client) -> None:
    """Both have the same fields."""
    older = RULES.replace("v1", "v1beta2")
    client.create(older, {"metadata": {"name": "r"}, "spec": {"taint": TAINT}})
    assert client.get(f"{older}/r")["apiVersion"] == "resource.k8s.io/v1beta2"
    assert client.get(f"{RULES}/r")["apiVersion"] == "resource.k8s.io/v1"


@pytest.fixture
def newest(start: Callable[..., Running]) -> Client:
    """A client of a server with all features of slices."""
    features = Features(
        dra_device_compatibility_groups=True, dra_optional_node_operations=True, dra_partitionable_devices_type=True
    )
    return start(features=features).client()


TYPED = {"attributes": {"type": {"string": "half"}}, "consumesCounters": [{**CONSUMED, "compatibilityGroups": ["g"]}]}
PARTITIONS = {"nodeName": "n", "partitionTypeAttribute": "gpu.example.com/type", "skipNodeOperations": ["*"]}


def test_fields_of_disabled_features_are_dropped(client: Client) -> None:
    """As in Kubernetes; the feature gates are off by default."""
    device = {**TYPED, "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}}
    spec = client.create(SLICES, a_slice(device, **PARTITIONS))["spec"]
    assert not {"partitionTypeAttribute", "skipNodeOperations"} & spec.keys()
    assert spec["devices"] == [{"name": "a", **TYPED, "consumesCounters": [CONSUMED]}]


@pytest.mark.parametrize(
    ("device", "spec", "field", "message"),
    [
        (
            {**TYPED, "consumesCounters": [{**CONSUMED, "compatibilityGroups": ["a", "b", "c"]}]},
            {},
            "spec.devices[0].consumesCounters[0].compatibilityGroups",
            "Too many: 3: must have at most 2 items",
        ),
        (
            {**TYPED, "consumesCounters": [{**CONSUMED, "compatibilityGroups": ["a", "a"]}]},
            {},
            "spec.devices[0].consumesCounters[0].compatibilityGroups[1]",
            'Duplicate value: "a"',
        ),
        (
            TYPED,
            {"skipNodeOperations": ["NodePrepareResources"]},
            "spec.skipNodeOperations",
            'Invalid value: ["NodePrepareResources"]: NodePrepareResources cannot be skipped unless',
        ),
        (
            TYPED,
            {"skipNodeOperations": ["All"]},
            "spec.skipNodeOperations[0]",
            'Unsupported value: "All": supported values: "*", "NodePrepareResources", "NodeUnprepareResources"',
        ),
        (
            {},
            {},
            "spec.partitionTypeAttribute",
            'Invalid value: "gpu.example.com/type": may only be set on a slice which declares devices that consume',
        ),
        (
            {**TYPED, "attributes": {}},
            {},
            "spec.devices[0].attributes[gpu.example.com/type]",
            "Required value: device consumes counters and `partitionTypeAttribute` names this attribute",
        ),
        (
            {**TYPED, "attributes": {"gpu.example.com/type": {"int": 1}}},
            {},
            "spec.devices[0].attributes[gpu.example.com/type]",
            'Invalid value: {"int":1}: must be a string value because `partitionTypeAttribute` names this attribute',
        ),
        (
            TYPED,
            {"partitionTypeAttribute": "type"},
            "spec.partitionTypeAttribute",
            'Invalid value: "type": a fully qualified name must be a domain and a name separated by a slash',
        ),
    ],
)
def test_invalid_fields_of_enabled_features_are_rejected(
    newest: Client, device: dict[str, Any], spec: dict[str, Any], field: str, message: str
) -> None:
    """Groups of compatible devices, types of partitions, and operations that drivers do not need."""
    ((where, found),) = causes(newest, a_slice(device, **{**PARTITIONS, **spec}))
    assert where == field
    assert found.startswith(message)
    newest.create(SLICES, a_slice(TYPED, **PARTITIONS))


def test_slices_are_selected_by_their_pool(client: Client) -> None:
    """As by node and driver."""
    client.create(SLICES, a_slice({}))
    for pool, count in (("node-1", 1), ("node-2", 0)):
        assert len(client.get(f"{SLICES}?fieldSelector=spec.pool.name%3D{pool}")["items"]) == count
