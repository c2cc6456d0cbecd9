"""Rules of devices: claims, allocations and reservations, templates, classes and slices."""

from typing import Any

import pytest

from kubestow.apiserver.errors import ApiError
from kubestow.config.features import Features
from support.apiserver.running import Client, pod
from support.apiserver.world import World

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
TEMPLATES = f"{GROUP}/namespaces/default/resourceclaimtemplates"
SLICES = f"{GROUP}/resourceslices"
CLASSES = f"{GROUP}/deviceclasses"
REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
EITHER = {"name": "e", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}
POOL = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
SLICE = {"driver": "gpu.example.com", "nodeName": "node-1", "pool": POOL}
HOLDER = {"resource": "pods", "name": "p", "uid": "uid-1"}
OTHER = {"resource": "pods", "name": "q", "uid": "uid-2"}


def result(request: str = "r", device: str = "gpu-0") -> dict[str, Any]:
    """Return an allocated device."""
    return {"request": request, "driver": "gpu.example.com", "pool": "node-1", "device": device}


def allocation(*results: dict[str, Any]) -> dict[str, Any]:
    """Return an allocation of devices."""
    return {"devices": {"results": list(results or (result(),))}}


def selecting(expression: str) -> dict[str, Any]:
    """Return a request with a selector."""
    selector = {"cel": {"expression": expression}}
    return {"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": [selector]}}


def requesting(*requests: Any, **more: Any) -> dict[str, Any]:
    """Return the spec of a claim."""
    return {"devices": {"requests": list(requests), **more}}


TOLERATION = "requests[0].exactly.tolerations[0]"


def tolerating(**toleration: str) -> dict[str, Any]:
    """Return the spec of a claim with a toleration."""
    return requesting({"name": "r", "exactly": {"deviceClassName": "gpu", "tolerations": [toleration]}})


def a_claim(client: Client, **status: Any) -> dict[str, Any]:
    """Create a claim with a status."""
    claim = client.create(CLAIMS, {"metadata": {"name": "c"}, "spec": requesting(REQUEST, EITHER)})
    code, written = client.call("PUT", f"{CLAIMS}/c/status", {**claim, "status": status})
    assert code == 200, written
    return dict(written)


def refusal(client: Client, method: str, path: str, body: Any, **more: Any) -> dict[str, str]:
    """Return field and message of each cause."""
    status, refused = client.call(method, path, body, **more)
    assert (status, refused["reason"]) == (422, "Invalid"), refused
    return {cause["field"]: cause["message"] for cause in refused["details"]["causes"]}


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        (requesting(REQUEST, REQUEST), "requests[1]", 'Duplicate value: "r"'),
        (requesting({**REQUEST, "name": "R"}), "requests[0].name", 'Invalid value: "R": a lowercase RFC 1123 label'),
        (requesting({"name": "r"}), "requests[0]", "Required value: exactly one of `exactly` or `firstAvailable`"),
        (requesting({**EITHER, **REQUEST}), "requests[0]", "Invalid value: null: exactly one of `exactly` or"),
        (requesting({"name": "r", "exactly": {}}), "requests[0].exactly.deviceClassName", "Required value"),
        (
            requesting({"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "Some"}}),
            "requests[0].exactly.allocationMode",
            'Unsupported value: "Some": supported values: "All", "ExactCount"',
        ),
        (
            requesting({"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All", "count": 2}}),
            "requests[0].exactly.count",
            "Invalid value: 2: must not be specified when allocationMode is 'All'",
        ),
        (
            requesting({"name": "r", "exactly": {"deviceClassName": "gpu", "count": -1}}),
            "requests[0].exactly.count",
            "Invalid value: -1: must be greater than zero",
        ),
        (
            requesting(selecting("device.driver ==")),
            "requests[0].exactly.selectors[0].cel.expression",
            'Invalid value: "device.driver ==": compilation failed: ERROR: <input>:1:17: Syntax error',
        ),
        (
            requesting(selecting('device.driver ==\n"gpu" +')),
            "requests[0].exactly.selectors[0].cel.expression",
            r'Invalid value: "device.driver ==\n\"gpu\" +": compilation failed: ERROR: <input>:2:8: Syntax error',
        ),
        (
            requesting(selecting("x" * 10_241)),
            "requests[0].exactly.selectors[0].cel.expression",
            "Too long: may not be more than 10240 bytes",
        ),
        (
            requesting(selecting('["a", "b"].max() == "b"')),
            "requests[0].exactly.selectors[0].cel.expression",
            "Forbidden: too complex, exceeds cost limit",
        ),
        (
            requesting({"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": [{}]}}),
            "requests[0].exactly.selectors[0].cel",
            "Required value",
        ),
        (
            requesting(*({**REQUEST, "name": f"r{number}"} for number in range(33))),
            "requests",
            "Too many: 33: must have at most 32 items",
        ),
        (
            requesting(EITHER, constraints=[{"requests": ["e/b"], "matchAttribute": "example.com/a"}]),
            "constraints[0].requests[0]",
            'Invalid value: "e/b": must be the name of a request',
        ),
        (requesting(REQUEST, constraints=[{"requests": ["r"]}]), "constraints[0]", "Required value: exactly one of"),
        (
            requesting(REQUEST, constraints=[{"requests": ["r", "r"], "matchAttribute": "example.com/a"}]),
            "constraints[0].requests[1]",
            'Duplicate value: "r"',
        ),
        (
            requesting(REQUEST, constraints=[{"matchAttribute": "example.com/a b"}]),
            "constraints[0].matchAttribute",
            'Invalid value: "a b": a valid C identifier must start with',
        ),
        (
            requesting(REQUEST, constraints=[{"matchAttribute": "example.com/"}]),
            "constraints[0].matchAttribute",
            'Invalid value: "": the name must not be empty',
        ),
        (
            requesting(REQUEST, constraints=[{"matchAttribute": "/a"}]),
            "constraints[0].matchAttribute",
            'Invalid value: "": the domain must not be empty',
        ),
        (
            requesting(REQUEST, constraints=[{"matchAttribute": "example.com/a"}] * 33),
            "constraints",
            "Too many: 33: must have at most 32 items",
        ),
        (requesting(REQUEST, config=[{}]), "config[0].opaque", "Required value"),
        (
            requesting(REQUEST, config=[{"opaque": {"driver": "example.com", "parameters": []}}]),
            "config[0].opaque.parameters",
            'Invalid value: "<value omitted>": must be a valid JSON object',
        ),
        (
            requesting(REQUEST, config=[{"opaque": {"driver": "example.com", "parameters": {"a": "x" * 10_240}}}]),
            "config[0].opaque.parameters",
            "Too long: may not be more than 10240 bytes",
        ),
        (tolerating(key="a b"), f"{TOLERATION}.key", 'Invalid value: "a b": name part must consist of'),
        (tolerating(key="a", operator="Exists", value="x"), f"{TOLERATION}.value", 'Invalid value: "x": must be empty'),
        (tolerating(key="a", value="x y"), f"{TOLERATION}.value", 'Invalid value: "x y": a valid label must be'),
        (
            tolerating(key="a", operator="Like"),
            f"{TOLERATION}.operator",
            'Unsupported value: "Like": supported values: "Equal", "Exists"',
        ),
        (
            tolerating(key="a", effect="NoRun"),
            f"{TOLERATION}.effect",
            'Unsupported value: "NoRun": supported values: "NoExecute", "NoSchedule", "None"',
        ),
        (
            requesting(REQUEST, constraints=[{"distinctAttribute": "model"}]),
            "constraints[0].distinctAttribute",
            'Invalid value: "model": a fully qualified name must be a domain and a name separated by a slash',
        ),
    ],
)
def test_an_invalid_claim_is_rejected(client: Client, spec: dict[str, Any], field: str, message: str) -> None:
    """By itself, and in a template."""
    causes = refusal(client, "POST", CLAIMS, {"metadata": {"name": "c"}, "spec": spec})
    assert list(causes) == [f"spec.devices.{field}"]
    assert causes[f"spec.devices.{field}"].startswith(message)
    causes = refusal(client, "POST", TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": spec}})
    assert list(causes) == [f"spec.spec.devices.{field}"]


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"selectors": [{"cel": {"expression": "device.drive"}}]}, "spec.selectors[0].cel.expression", "Invalid value"),
        ({"extendedResourceName": "cpu"}, "spec.extendedResourceName", 'Invalid value: "cpu": must be a valid'),
        ({"extendedResourceName": "requests.a.com/b"}, "spec.extendedResourceName", 'Invalid value: "requests'),
        ({"config": [{}]}, "spec.config[0].opaque", "Required value"),
    ],
)  # fmt: skip
def test_an_invalid_class_is_rejected(client: Client, spec: dict[str, Any], field: str, message: str) -> None:
    """Its expressions must compile, and its extended resource name must be valid."""
    causes = refusal(client, "POST", CLASSES, {"metadata": {"name": "gpu"}, "spec": spec})
    assert list(causes) == [field]
    assert causes[field].startswith(message)


ATTRIBUTE = "spec.devices[0].attributes[model]"
TERM = {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}


def with_attribute(value: dict[str, Any]) -> dict[str, Any]:
    """Return a change that gives the slice a device with one attribute."""
    return {"devices": [{"name": "a", "attributes": {"model": value}}]}


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"driver": ""}, "spec.driver", "Required value"),
        ({"pool": {**POOL, "name": "a//b"}}, "spec.pool.name", "Required value"),
        ({"pool": {**POOL, "generation": -1}}, "spec.pool.generation", "Invalid value: -1: must be greater than or"),
        ({"pool": {**POOL, "resourceSliceCount": 0}}, "spec.pool.resourceSliceCount", "Invalid value: 0: must be"),
        ({"nodeName": None}, "spec", "Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`,"),
        ({"allNodes": True}, "spec", 'Invalid value: "{`nodeName`, `allNodes`}": exactly one of'),
        ({"driver": "a" * 64}, "spec.driver", "Too long: may not be more than 63 bytes"),
        (
            {"nodeName": None, "nodeSelector": {"nodeSelectorTerms": [TERM, TERM]}},
            "spec.nodeSelector.nodeSelectorTerms",
            "Invalid value: 2 terms: must have exactly one node selector term",
        ),
        ({"devices": [{"name": "a"}, {"name": "a"}]}, "spec.devices[1]", 'Duplicate value: "a"'),
        ({"devices": [{"name": "a.b"}]}, "spec.devices[0].name", 'Invalid value: "a.b": a lowercase RFC 1123 label'),
        (
            with_attribute({}),
            ATTRIBUTE,
            'Invalid value: "": must specify one of: `int`, `bool`, `string`, `version`, `ints`,',
        ),
        (
            with_attribute({"int": 1, "bool": True}),
            ATTRIBUTE,
            'Invalid value: "{int, bool}": must specify exactly one of: `int`, `bool`, `string`, `version`, `ints`,',
        ),
        (
            with_attribute({"ints": [1]}),
            ATTRIBUTE,
            'Invalid value: "": must specify one of: `int`, `bool`, `string`, `version`, `ints`,',
        ),
        (
            with_attribute({"version": "1.2"}),
            f"{ATTRIBUTE}.version",
            'Invalid value: "1.2": must be a string compatible',
        ),
        (with_attribute({"string": "x" * 65}), f"{ATTRIBUTE}.string", "Too long: may not be more than 64 bytes"),
        (
            {"devices": [{"name": f"d{number}"} for number in range(129)]},
            "spec.devices",
            "Too many: 129: must have at most 128 items",
        ),
        (
            {"devices": [{"name": "a"}], "sharedCounters": [{"name": "s", "counters": {"c": {"value": "1"}}}]},
            "spec",
            'Invalid value: "": only one of `sharedCounters` or `devices` is allowed',
        ),
    ],
)
def test_an_invalid_slice_is_rejected(client: Client, change: dict[str, Any], field: str, message: str) -> None:
    """It needs a driver, a pool, one selection of nodes, and devices with unique names."""
    causes = refusal(client, "POST", SLICES, {"metadata": {"name": "s"}, "spec": {**SLICE, **change}})
    assert list(causes) == [field]
    assert causes[field].startswith(message)


def test_specs_of_claims_templates_and_slices_are_immutable(client: Client) -> None:
    """Of slices: driver, pool and node."""
    claim = client.create(CLAIMS, {"metadata": {"name": "c"}, "spec": requesting(REQUEST)})
    claim["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    assert refusal(client, "PUT", f"{CLAIMS}/c", claim) == {"spec": "Invalid value: field is immutable"}
    template = client.create(TEMPLATES, {"metadata": {"name": "t"}, "spec": {"spec": requesting(REQUEST)}})
    template["spec"]["spec"] = requesting(EITHER)
    assert list(refusal(client, "PUT", f"{TEMPLATES}/t", template)) == ["spec"]
    offered = client.create(SLICES, {"metadata": {"name": "s"}, "spec": SLICE})
    changed = {"driver": "other.example.com", "nodeName": "node-2", "pool": {**POOL, "name": "node-2"}}
    causes = refusal(client, "PUT", f"{SLICES}/s", {**offered, "spec": changed})
    assert sorted(causes) == ["spec.driver", "spec.nodeName", "spec.pool.name"]
    more = {**offered, "spec": {**SLICE, "pool": {**POOL, "generation": 2}, "devices": [{"name": "gpu-0"}]}}
    assert client.call("PUT", f"{SLICES}/s", more)[1]["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("status", "field", "message"),
    [
        ({"reservedFor": [HOLDER]}, "reservedFor", "Forbidden: may not be specified when `allocated` is not set"),
        (
            {"allocation": allocation(), "reservedFor": [HOLDER, HOLDER]},
            "reservedFor[1]",
            'Duplicate value: "uid-1"',
        ),
        ({"allocation": allocation(), "reservedFor": [{**HOLDER, "name": ""}]}, "reservedFor[0].name", "Required"),
        (
            {"allocation": allocation(), "reservedFor": [{**HOLDER, "uid": f"u{number}"} for number in range(257)]},
            "reservedFor",
            "Too many: 257: must have at most 256 items",
        ),
        (
            {"allocation": allocation(*(result(device=f"d{number}") for number in range(33)))},
            "allocation.devices.results",
            "Too many: 33: must have at most 32 items",
        ),
        (
            {"allocation": allocation(result("e/b"))},
            "allocation.devices.results[0].request",
            'Invalid value: "e/b": must be the name of a request',
        ),
        (
            {"allocation": allocation(result(device="a.b"))},
            "allocation.devices.results[0].device",
            'Invalid value: "a.b": a lowercase RFC 1123 label',
        ),
    ],
)
def test_an_invalid_allocation_is_rejected(client: Client, status: dict[str, Any], field: str, message: str) -> None:
    """Results are for requests of the claim, and reservations need an allocation."""
    claim = a_claim(client)
    causes = refusal(client, "PUT", f"{CLAIMS}/c/status", {**claim, "status": status})
    assert list(causes) == [f"status.{field}"]
    assert causes[f"status.{field}"].startswith(message)


def test_an_allocation_is_written_once_and_removed_as_a_whole(client: Client) -> None:
    """It cannot change, or be removed while reserved; reservations can be added and removed."""
    claim = a_claim(client, allocation=allocation(result("e/a")), reservedFor=[HOLDER])
    status, path = claim["status"], f"{CLAIMS}/c/status"
    causes = refusal(client, "PUT", path, {**claim, "status": {**status, "allocation": allocation()}})
    assert causes == {"status.allocation": "Invalid value: field is immutable"}
    assert list(refusal(client, "PUT", path, {**claim, "status": {"reservedFor": [HOLDER]}})) == ["status.reservedFor"]
    code, claim = client.call("PUT", path, {**claim, "status": {**status, "reservedFor": [HOLDER, OTHER]}})
    assert code == 200
    code, claim = client.call("PUT", path, {**claim, "status": {}})
    assert (code, claim.get("status", {})) == (200, {})


def test_a_reservation_is_removed_by_its_uid(client: Client) -> None:
    """With a strategic merge patch; the response is the claim."""
    a_claim(client, allocation=allocation(), reservedFor=[HOLDER, OTHER])
    drop = {"status": {"reservedFor": [{"$patch": "delete", "uid": "uid-1"}]}}
    left = client.patch(f"{CLAIMS}/c/status", drop, "strategic-merge-patch+json")
    assert left["status"] == {"allocation": allocation(), "reservedFor": [OTHER]}


def test_a_terminating_claim_accepts_no_reservations(client: Client) -> None:
    """A finalizer protects it."""
    claim = a_claim(client, allocation=allocation(), reservedFor=[HOLDER])
    claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    assert client.call("PUT", f"{CLAIMS}/c", claim)[0] == 200
    client.delete(f"{CLAIMS}/c")
    more = {"status": {"reservedFor": [HOLDER, OTHER]}}
    causes = refusal(client, "PATCH", f"{CLAIMS}/c/status", more, content_type="application/merge-patch+json")
    assert causes["status.reservedFor"].startswith("Forbidden: new entries may not be added while")


def test_device_status_is_removed_with_the_allocation(client: Client) -> None:
    """A device that is allocated again starts without a status."""
    here = {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
    claim = a_claim(client, allocation=allocation(), devices=[here])
    path, elsewhere = f"{CLAIMS}/c/status", {**here, "device": "gpu-1"}
    causes = refusal(client, "PUT", path, {**claim, "status": {**claim["status"], "devices": [elsewhere]}})
    message = 'Invalid value: "gpu.example.com/node-1/gpu-1": must be an allocated device in the claim'
    assert causes == {"status.devices[0]": message}
    code, claim = client.call("PUT", path, {**claim, "status": {"devices": [here]}})
    assert (code, claim["status"]) == (200, {})


MODEL = "gpu.example.com/model"


def deriving(*names: str, **constraint: Any) -> dict[str, Any]:
    """Return a claim with a request that derives these attributes, a second request, and a constraint."""
    attributes = [{"name": name, "expression": 'device.attributes["gpu.example.com"].model'} for name in names]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "derivedAttributes": attributes}}
    spec = requesting(request, {**REQUEST, "name": "other"}, constraints=[constraint])
    return {"metadata": {"name": "c"}, "spec": spec}


@pytest.mark.parametrize(
    ("claim", "field", "message"),
    [
        (deriving(MODEL, matchAttribute="a.example.com/b"), "[0].name", "must be referenced by at least one"),
        (deriving(MODEL, requests=["other"], matchAttribute=MODEL), "[0].name", "must be referenced by at least one"),
        (deriving(MODEL, MODEL, distinctAttribute=MODEL), "[1]", f'Duplicate value: "{MODEL}"'),
        (deriving("", matchAttribute=MODEL), "[0].name", "Required value"),
    ],
)
def test_invalid_derived_attributes_are_rejected(
    client: Client, claim: dict[str, Any], field: str, message: str
) -> None:
    """Each is used by a constraint on its request."""
    problems = refusal(client, "POST", CLAIMS, claim)
    assert message in problems[f"spec.devices.requests[0].exactly.derivedAttributes{field}"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("device.driver +", "compilation failed"),
        ("{'a': 1}", "must evaluate to a primitive scalar"),
        ("x" * 10_241, "Too long: may not be more than 10240 bytes"),
    ],
)
def test_derived_attributes_must_compile(client: Client, expression: str, message: str) -> None:
    """They are attributes: single values, or lists of them."""
    claim = deriving(MODEL, matchAttribute=MODEL)
    derived = claim["spec"]["devices"]["requests"][0]["exactly"]["derivedAttributes"][0]
    derived["expression"] = expression
    problems = refusal(client, "POST", CLAIMS, claim)
    assert message in problems["spec.devices.requests[0].exactly.derivedAttributes[0].expression"]


@pytest.mark.parametrize("requests", [{}, {"requests": ["r"]}], ids=["of all requests", "of this request"])
def test_a_derived_attribute_is_used_by_a_constraint(client: Client, requests: dict[str, Any]) -> None:
    """On all requests, or on this one."""
    client.create(CLAIMS, deriving(MODEL, matchAttribute=MODEL, **requests))


def test_admin_access_needs_a_labelled_namespace(client: Client) -> None:
    """Other namespaces are rejected."""
    admin = requesting({"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}})
    claim, template = {"metadata": {"name": "c"}, "spec": admin}, {"metadata": {"name": "t"}, "spec": {"spec": admin}}
    needed = "Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label"
    causes = refusal(client, "POST", CLAIMS, claim)["spec.devices.requests[0].adminAccess"]
    assert causes == f"{needed} on the containing namespace"
    assert "spec.spec.devices.requests[0].adminAccess" in refusal(client, "POST", TEMPLATES, template)
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    client.patch("/api/v1/namespaces/default", label, "merge-patch+json")
    client.create(CLAIMS, claim)
    client.create(TEMPLATES, template)


def test_a_template_must_have_valid_labels(client: Client) -> None:
    """They are checked before a pod needs the claim."""
    spec = {"metadata": {"labels": {"a b": "c"}}, "spec": requesting(REQUEST)}
    assert list(refusal(client, "POST", TEMPLATES, {"metadata": {"name": "t"}, "spec": spec})) == [
        "spec.metadata.labels"
    ]


def test_the_default_operator_of_a_toleration_is_equal(client: Client) -> None:
    """It is set in the stored claim."""
    made = client.create(CLAIMS, {"metadata": {"name": "c"}, "spec": tolerating(key="a")})
    assert made["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] == [{"key": "a", "operator": "Equal"}]


def test_a_claim_for_an_extended_resource_is_recorded_in_the_pod_status(client: Client) -> None:
    """The server generates the name, and a patch adds it to the status."""
    made = client.create(CLAIMS, {"metadata": {"generateName": "p-extended-"}, "spec": requesting(REQUEST)})
    name = made["metadata"]["name"]
    assert name.startswith("p-extended-")
    client.create("/api/v1/namespaces/default/pods", pod("p"))
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}
    causes = {"resourceClaimName": name, "requestMappings": [mapping]}
    patch = {"status": {"extendedResourceClaimStatus": causes}}
    written = client.patch("/api/v1/namespaces/default/pods/p/status", patch, "strategic-merge-patch+json")
    assert written["status"]["extendedResourceClaimStatus"] == causes


@pytest.mark.parametrize(
    ("expression", "without", "with_it"),
    [
        ('device.attributes["a"].b.includes(1)', "", "DRAListTypeAttributes=true"),
        ("device.allowMultipleAllocations", "DRAConsumableCapacity=false", ""),
    ],
)
def test_expressions_can_use_functions_of_enabled_gates(expression: str, without: str, with_it: str) -> None:
    """In classes, claims and templates."""
    request = selecting(expression)
    selectors = request["exactly"]["selectors"]
    written: list[tuple[str, dict[str, Any]]] = [
        ("deviceclasses.resource.k8s.io", {"selectors": selectors}),
        ("resourceclaims.resource.k8s.io", requesting(request)),
        ("resourceclaimtemplates.resource.k8s.io", {"spec": requesting(request)}),
        (
            "resourceclaims.resource.k8s.io",
            requesting({"name": "e", "firstAvailable": [{"name": "a", **request["exactly"]}]}),
        ),
    ]
    for number, (storage, spec) in enumerate(written):
        World(gates=with_it).create(storage, f"x{number}", spec)
        with pytest.raises(ApiError, match=r"selectors\[0\].cel.expression: Invalid value: .*compilation failed"):
            World(gates=without).create(storage, f"x{number}", spec)


LISTED = "resourceslices.resource.k8s.io"
LISTS_ON = "DRAListTypeAttributes=true"


def listing(*attributes: dict[str, Any]) -> dict[str, Any]:
    """Return a slice with a device that has these attributes."""
    return {**SLICE, "devices": [{"name": "a", "attributes": {f"m{n}": one for n, one in enumerate(attributes)}}]}


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ({"ints": []}, r"attributes\[m0\].ints: Invalid value: \[\]: must not be empty if specified"),
        ({"ints": [1], "bools": [True]}, r'"{ints, bools}": must specify exactly one of: `int`,'),
        ({"int": 1, "bools": []}, r'"IntValue":1,.*,"BoolValues":\[\],.*: exactly one value must be specified'),
        ({"strings": ["a", "x" * 65]}, r"attributes\[m0\].strings\[1\]: Too long: may not be more than 64 bytes"),
        ({"versions": ["1.0.0", "1.2"]}, r'attributes\[m0\].versions\[1\]: Invalid value: "1.2": must be a string'),
        (
            {"ints": [*range(49)]},
            r"devices\[0\]: Invalid value: 49: the total number of attribute values must not exceed",
        ),
    ],
)
def test_invalid_lists_are_rejected(attribute: dict[str, Any], message: str) -> None:
    """With the messages of kube-apiserver."""
    with pytest.raises(ApiError, match=message):
        World(gates=LISTS_ON).create(LISTED, "s", listing(attribute))


def test_lists_are_dropped_unless_their_gate_is_enabled() -> None:
    """Lists of all types, also with repeated values, are kept with the gate."""
    lists: list[dict[str, Any]] = [
        {"ints": [*range(40)]},
        {"bools": [True, True]},
        {"strings": ["a"]},
        {"versions": ["1.0.0"]},
    ]
    kept = World(gates=LISTS_ON).create(LISTED, "s", listing(*lists))
    assert [*kept["spec"]["devices"][0]["attributes"].values()] == lists
    dropped = World().create(LISTED, "s", listing({"int": 1, "ints": [2]}))
    assert dropped["spec"]["devices"][0]["attributes"] == {"m0": {"int": 1}}


def test_slices_with_lists_keep_them_without_the_gate() -> None:
    """An update after disabling the gate keeps existing lists."""
    world = World(gates=LISTS_ON)
    world.create(LISTED, "s", listing({"ints": [1, 2]}))
    world.writer.admission.features = Features()
    more = {"name": "b", "attributes": {"m": {"strings": ["x"]}}}
    changed = world.update(LISTED, "s", lambda obj: obj["spec"]["devices"].append(more))
    assert [one["attributes"] for one in changed["spec"]["devices"]] == [{"m0": {"ints": [1, 2]}}, more["attributes"]]
