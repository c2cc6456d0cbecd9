"""Devices: the claims for them and templates of claims, the classes they come in, and the slices that offer them.

What a claim asks for never changes, nor does what it got: an allocation is written once, and taken back as a whole when
nobody holds a reservation any more.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    dns_label,
    dns_subdomain,
    qualified_name,
    wrong_name,
)
from kubestow.apiserver.rules.placement import wrong_node_selector
from kubestow.cel import CompileError, Selector, compile_selector
from kubestow.cel.estimates import Extent, most_expensive
from kubestow.cel.library.semver import Semver

_MAX_REQUESTS, _MAX_ALTERNATIVES, _MAX_SELECTORS = 32, 8, 32
_MAX_RESULTS, _MAX_RESERVATIONS = 32, 256
_MAX_DEVICES, _MAX_ADVANCED_DEVICES, _MAX_COUNTER_SETS = 128, 64, 8
_MAX_EXPRESSION, _MAX_COST = 10 * 1024, 1_000_000
_MAX_ATTRIBUTES, _LONGEST_DOMAIN, _LONGEST_NAME, _LONGEST_VALUE = 32, 63, 32, 64


def _by_name(value: Extent | None) -> Extent:
    """A device's attributes or capacity, by domain and name."""
    inner = Extent(_MAX_ATTRIBUTES, Extent(_LONGEST_NAME), value, selectable=value is not None)
    return Extent(_MAX_ATTRIBUTES, Extent(_LONGEST_DOMAIN), inner)


_DEVICE = Extent(
    fields={
        "driver": Extent(_LONGEST_DOMAIN),
        "attributes": _by_name(Extent(_LONGEST_VALUE)),
        "capacity": _by_name(None),
        "allowMultipleAllocations": Extent(1),
    }
)
_IMMUTABLE = "Invalid value: field is immutable"
_MODES = ("All", "ExactCount")
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE = f"exactly one of {', '.join(f'`{name}`' for name in _PLACES)} is required"
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_NO_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def default_claim(obj: dict[str, Any]) -> None:
    """A request asks for one device, unless it says otherwise."""
    _default_requests(obj.setdefault("spec", {}))


def default_template(obj: dict[str, Any]) -> None:
    """The claims of a template have the defaults of claims."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("metadata", {})
    _default_requests(spec.setdefault("spec", {}))


def _default_requests(spec: dict[str, Any]) -> None:
    for request in spec.get("devices", {}).get("requests", ()):
        exactly = request.get("exactly")
        for one in (*([exactly] if exactly is not None else ()), *request.get("firstAvailable", ())):
            if not one.get("allocationMode"):
                one["allocationMode"] = "ExactCount"
            if one["allocationMode"] == "ExactCount" and not one.get("count"):
                one["count"] = 1


def validate_claim(obj: dict[str, Any]) -> Iterator[Cause]:
    """Requests with names of their own and selectors that compile."""
    yield from _wrong_claim(obj["spec"], "spec.devices")


def validate_template(obj: dict[str, Any]) -> Iterator[Cause]:
    """The claims of a template are sound."""
    yield from _wrong_claim(obj["spec"]["spec"], "spec.spec.devices")


def validate_class(obj: dict[str, Any]) -> Iterator[Cause]:
    """Selectors that compile, and the name of a resource that could be an extended one."""
    spec = obj.get("spec", {})
    yield from _wrong_selectors(spec.get("selectors", ()), "spec.selectors")
    name = spec.get("extendedResourceName")
    if name is not None and ("/" not in name or "kubernetes.io/" in name or qualified_name(name)):
        message = f'Invalid value: "{name}": must be a valid extended resource name'
        yield "spec.extendedResourceName", INVALID, message


def keep_spec(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """What a claim asks for stays."""
    if new.get("spec") != old.get("spec"):
        yield "spec", INVALID, _IMMUTABLE


def validate_claim_status(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """An allocation is written once; reservations need one, and come to an end with the claim."""
    status, before = new.get("status", {}), old.get("status", {})
    reserved, allocation = status.get("reservedFor", ()), status.get("allocation")
    path = "status.reservedFor"
    yield from _wrong_size(reserved, _MAX_RESERVATIONS, path)
    yield from _repeated([one.get("uid", "") for one in reserved], lambda index: f"{path}[{index}]")
    for index, one in enumerate(reserved):
        for name in ("resource", "name", "uid"):
            if not one.get(name):
                yield f"{path}[{index}].{name}", REQUIRED, "Required value"
    if reserved and allocation is None:
        yield path, FORBIDDEN, "Forbidden: may not be specified when `allocated` is not set"
    elif "deletionTimestamp" in new["metadata"] and any(one not in before.get("reservedFor", ()) for one in reserved):
        message = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield path, FORBIDDEN, f"Forbidden: {message}"
    if allocation is not None:
        if before.get("allocation") is None:
            yield from _wrong_allocation(allocation, _request_names(new["spec"]), "status.allocation")
        elif allocation != before["allocation"]:
            yield "status.allocation", INVALID, _IMMUTABLE


def validate_slice(obj: dict[str, Any]) -> Iterator[Cause]:
    """A driver and a pool, one way to say which nodes, and devices with names of their own."""
    spec = obj.get("spec", {})
    yield from _wrong_text(spec.get("driver", ""), "spec.driver", dns_subdomain)
    pool = spec.get("pool", {})
    for part in pool.get("name", "").split("/"):
        yield from _wrong_text(part, "spec.pool.name", dns_subdomain)
    for name, least in (("generation", 0), ("resourceSliceCount", 1)):
        value = pool.get(name, 0)
        if value < least:
            yield f"spec.pool.{name}", INVALID, f"Invalid value: {value}: must be greater than or equal to {least}"
    places = [name for name in _PLACES if spec.get(name)]
    if not places:
        yield "spec", REQUIRED, f"Required value: {_ONE_PLACE}"
    elif len(places) > 1:
        given = ", ".join(f"`{name}`" for name in places)
        yield "spec", INVALID, f'Invalid value: "{{{given}}}": {_ONE_PLACE}, but multiple fields are set'
    if spec.get("nodeName"):
        yield from wrong_name("spec.nodeName", spec["nodeName"], dns_subdomain)
    if spec.get("nodeSelector"):
        yield from wrong_node_selector(spec["nodeSelector"], "spec.nodeSelector")
    devices, counters = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and counters is not None:
        yield "spec", INVALID, 'Invalid value: "": only one of `sharedCounters` or `devices` is allowed'
    advanced = any(one.get("taints") or one.get("consumesCounters") for one in devices or ())
    yield from _wrong_names(devices or (), _MAX_ADVANCED_DEVICES if advanced else _MAX_DEVICES, "spec.devices")
    yield from _wrong_names(counters or (), _MAX_COUNTER_SETS, "spec.sharedCounters")
    for index, device in enumerate(devices or ()):
        for name, attribute in device.get("attributes", {}).items():
            yield from _wrong_attribute(attribute, f"spec.devices[{index}].attributes[{name}]")


def _wrong_attribute(attribute: dict[str, Any], path: str) -> Iterator[Cause]:
    if len(attribute) != 1:
        yield path, INVALID, 'Invalid value: "": exactly one value must be specified'
    for kind in ("string", "version"):
        if len(attribute.get(kind, "").encode()) > _LONGEST_VALUE:
            yield f"{path}.{kind}", "FieldValueTooLong", f"Too long: may not be more than {_LONGEST_VALUE} bytes"
    try:
        Semver(attribute.get("version", "0.0.0"))
    except ValueError:
        message = f'Invalid value: "{attribute["version"]}": must be a string compatible with semver.org spec 2.0.0'
        yield f"{path}.version", INVALID, message


def keep_slice(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """A slice stays with its driver, pool and node."""
    now, was = new.get("spec", {}), old["spec"]
    if now.get("pool", {}).get("name") != was["pool"]["name"]:
        yield "spec.pool.name", INVALID, _IMMUTABLE
    for name in ("driver", "nodeName"):
        if now.get(name) != was.get(name):
            yield f"spec.{name}", INVALID, _IMMUTABLE


def _wrong_claim(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    devices = spec.get("devices", {})
    requests = devices.get("requests", ())
    yield from _wrong_names(requests, _MAX_REQUESTS, f"{path}.requests")
    for index, request in enumerate(requests):
        where = f"{path}.requests[{index}]"
        exactly, alternatives = request.get("exactly"), request.get("firstAvailable", ())
        if exactly is None and not alternatives:
            yield where, REQUIRED, f"Required value: {_ONE_KIND}"
        elif exactly is not None and alternatives:
            yield where, INVALID, f"Invalid value: {_ONE_KIND}, but multiple fields are set"
        elif exactly is not None:
            yield from _wrong_request(exactly, f"{where}.exactly")
        yield from _wrong_names(alternatives, _MAX_ALTERNATIVES, f"{where}.firstAvailable")
        for number, one in enumerate(alternatives):
            yield from _wrong_request(one, f"{where}.firstAvailable[{number}]")
    known = _request_names(spec)
    for name in ("constraints", "config"):
        for index, one in enumerate(devices.get(name, ())):
            where = f"{path}.{name}[{index}]"
            yield from _unknown_requests(one.get("requests", ()), known, f"{where}.requests")
            if name == "constraints":
                yield from _wrong_constraint(one, where)


def _wrong_constraint(constraint: dict[str, Any], path: str) -> Iterator[Cause]:
    given = [kind for kind in ("matchAttribute", "distinctAttribute") if constraint.get(kind)]
    if not given:
        yield f"{path}.matchAttribute", REQUIRED, "Required value"
    for kind in given:
        if "/" not in constraint[kind]:
            problem = "a fully qualified name must be a domain and a name separated by a slash"
            yield f"{path}.{kind}", INVALID, f'Invalid value: "{constraint[kind]}": {problem}'


def _wrong_request(request: dict[str, Any], path: str) -> Iterator[Cause]:
    yield from _wrong_text(request.get("deviceClassName", ""), f"{path}.deviceClassName", dns_subdomain)
    yield from _wrong_selectors(request.get("selectors", ()), f"{path}.selectors")
    mode, count = request["allocationMode"], request.get("count", 0)
    if mode not in _MODES:
        supported = ", ".join(f'"{one}"' for one in _MODES)
        message = f'Unsupported value: "{mode}": supported values: {supported}'
        yield f"{path}.allocationMode", NOT_SUPPORTED, message
    elif mode == "All" and count:
        message = f"Invalid value: {count}: must not be specified when allocationMode is 'All'"
        yield f"{path}.count", INVALID, message
    elif mode == "ExactCount" and count <= 0:
        yield f"{path}.count", INVALID, f"Invalid value: {count}: must be greater than zero"


def _wrong_selectors(selectors: Sequence[dict[str, Any]], path: str) -> Iterator[Cause]:
    yield from _wrong_size(selectors, _MAX_SELECTORS, path)
    for index, one in enumerate(selectors):
        if not one.get("cel"):
            yield f"{path}[{index}].cel", REQUIRED, "Required value"
            continue
        where, expression = f"{path}[{index}].cel.expression", one["cel"].get("expression", "")
        if len(expression.encode()) > _MAX_EXPRESSION:
            yield where, "FieldValueTooLong", f"Too long: may not be more than {_MAX_EXPRESSION} bytes"
            continue
        try:
            selector = compile_selector(expression)
        except CompileError as error:
            yield where, INVALID, f'Invalid value: "{expression}": {error}'
            continue
        if most_a_selector_costs(selector) > _MAX_COST:
            yield where, FORBIDDEN, "Forbidden: too complex, exceeds cost limit"


def most_a_selector_costs(selector: Selector) -> float:
    """What asking a selector about a device can cost."""
    return most_expensive(selector.tree, {"device": _DEVICE})


def _wrong_allocation(allocation: dict[str, Any], known: set[str], path: str) -> Iterator[Cause]:
    results = allocation.get("devices", {}).get("results", ())
    yield from _wrong_size(results, _MAX_RESULTS, f"{path}.devices.results")
    for index, one in enumerate(results):
        where = f"{path}.devices.results[{index}]"
        if one.get("request") not in known:
            yield f"{where}.request", INVALID, f'Invalid value: "{one.get("request", "")}": {_NO_REQUEST}'
        yield from _wrong_text(one.get("driver", ""), f"{where}.driver", dns_subdomain)
        for part in one.get("pool", "").split("/"):
            yield from _wrong_text(part, f"{where}.pool", dns_subdomain)
        yield from _wrong_text(one.get("device", ""), f"{where}.device", dns_label)
    if allocation.get("nodeSelector"):
        yield from wrong_node_selector(allocation["nodeSelector"], f"{path}.nodeSelector")


def _request_names(spec: dict[str, Any]) -> set[str]:
    """What results, constraints and settings may refer to: requests, and alternatives as `request/alternative`."""
    requests = spec.get("devices", {}).get("requests", ())
    names = {one.get("name") for one in requests}
    return names | {f"{one.get('name')}/{sub.get('name')}" for one in requests for sub in one.get("firstAvailable", ())}


def _unknown_requests(names: Iterable[str], known: set[str], path: str) -> Iterator[Cause]:
    for index, name in enumerate(names):
        if name not in known:
            yield f"{path}[{index}]", INVALID, f'Invalid value: "{name}": {_NO_REQUEST}'


def _wrong_names(items: Sequence[dict[str, Any]], most: int, path: str) -> Iterator[Cause]:
    """Too many items, names that are no DNS labels, and names that come twice."""
    yield from _wrong_size(items, most, path)
    for index, one in enumerate(items):
        yield from _wrong_text(one.get("name", ""), f"{path}[{index}].name", dns_label)
    yield from _repeated([one.get("name", "") for one in items], lambda index: f"{path}[{index}].name")


def _wrong_size(items: Sequence[object], most: int, path: str) -> Iterator[Cause]:
    if len(items) > most:
        yield path, "FieldValueTooMany", f"Too many: {len(items)}: must have at most {most} items"


def _repeated(texts: Sequence[str], path: Callable[[int], str]) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, text in enumerate(texts):
        if text and text in seen:
            yield path(index), DUPLICATE, f'Duplicate value: "{text}"'
        seen.add(text)


def _wrong_text(text: str, path: str, wrong: Callable[[str], Sequence[str]]) -> Iterator[Cause]:
    if not text:
        yield path, REQUIRED, "Required value"
    else:
        yield from wrong_name(path, text, wrong)
