"""Rules for requests for devices: claims, claim templates, and device classes.

The spec of a claim is immutable. Its allocation is written once, and removed as a whole when there are no reservations
left.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from kubestow.api.cel import CompileError, Derivation, Selector, compile_selector
from kubestow.api.cel.estimates import Extent, most_expensive
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules import device_fields as fields
from kubestow.apiserver.rules.causes import check_choice, check_required, forbidden, invalid, required
from kubestow.apiserver.rules.lists import check_items, check_unique, each
from kubestow.apiserver.rules.names import INVALID, check_metadata, dns_label, dns_subdomain, qualified_name
from kubestow.apiserver.rules.placement import check_node_selector
from kubestow.apiserver.rules.slices import MAX_ATTRIBUTES, MAX_VALUE_LENGTH
from kubestow.config.features import Features

_MAX_REQUESTS, _MAX_ALTERNATIVES, _MAX_SELECTORS = 32, 8, 32
_MAX_CONSTRAINTS, _MAX_SETTINGS, _MAX_DERIVED = 32, 32, 32
_MAX_RESULTS, _MAX_RESERVATIONS, _MAX_CONDITIONS = 32, 256, 8
_MAX_EXPRESSION, _MAX_COST, _MAX_PARAMETERS = 10 * 1024, 1_000_000, 10 * 1024


def _by_name(value: Extent | None) -> Extent:
    """Return the extent of a device's attributes or capacity, by domain and name."""
    inner = Extent(MAX_ATTRIBUTES, Extent(fields.MAX_NAME_LENGTH), value, selectable=value is not None)
    return Extent(MAX_ATTRIBUTES, Extent(fields.MAX_DOMAIN_LENGTH), inner)


_DEVICE = Extent(
    fields={
        "driver": Extent(fields.MAX_DOMAIN_LENGTH),
        "attributes": _by_name(Extent(MAX_VALUE_LENGTH)),
        "capacity": _by_name(None),
        "allowMultipleAllocations": Extent(1),
    }
)
_ADMIN = "resource.kubernetes.io/admin-access"
_IMMUTABLE = "Invalid value: field is immutable"
_MODES = ("All", "ExactCount")
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_NO_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"

_TOO_EXPENSIVE = "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"
_UNUSED = "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request"


def validate_claim(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the requests, constraints and settings of a claim."""
    yield from _check_claim(obj["spec"], "spec.devices")


def validate_template(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the claims of a template, with their labels and annotations."""
    for field, reason, message in check_metadata(obj["spec"]["metadata"]):
        yield f"spec.{field}", reason, message
    yield from _check_claim(obj["spec"]["spec"], "spec.spec.devices")


def _claim_of(obj: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the path and the spec of a claim, or of the claims of a template."""
    spec = obj["spec"]
    return ("spec.spec", spec["spec"]) if "spec" in spec else ("spec", spec)


def require_admin_label(obj: dict[str, Any], labels: dict[str, str]) -> Iterator[Cause]:
    """Check that requests for admin access are in namespaces with the admin label."""
    path, claim = _claim_of(obj)
    for index, request in enumerate(claim.get("devices", {}).get("requests", ())):
        if (request.get("exactly") or {}).get("adminAccess") and labels.get(_ADMIN) != "true":
            message = f"admin access to devices requires the `{_ADMIN}: true` label on the containing namespace"
            yield forbidden(f"{path}.devices.requests[{index}].adminAccess", message)


def validate_class(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the number of selectors, the extended resource name, and the settings for drivers."""
    spec = obj.get("spec", {})
    yield from fields.check_size(spec.get("selectors", ()), _MAX_SELECTORS, "spec.selectors")
    name = spec.get("extendedResourceName")
    if name is not None and (
        "/" not in name or "kubernetes.io/" in name or name.startswith("requests.") or qualified_name(name)
    ):
        yield invalid("spec.extendedResourceName", name, "must be a valid extended resource name")
    yield from fields.check_size(spec.get("config", ()), _MAX_SETTINGS, "spec.config")
    yield from check_items(spec.get("config", ()), "spec.config", _check_setting)


def validate_spec_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that the spec is unchanged."""
    if new.get("spec") != old.get("spec"):
        yield "spec", INVALID, _IMMUTABLE


def drop_device_status(new: dict[str, Any], old: dict[str, Any]) -> None:
    """Drop the status of devices that are no longer allocated."""
    status = new.get("status", {})
    removed = _allocated(old.get("status", {})) - _allocated(status)
    if removed and status.get("devices"):
        kept = [one for one in status["devices"] if _identity(one) not in removed]
        new["status"] = {key: value for key, value in status.items() if key != "devices"}
        if kept:
            new["status"]["devices"] = kept


def _allocated(status: dict[str, Any]) -> set[tuple[str, ...]]:
    results = (status.get("allocation") or {}).get("devices", {}).get("results", ())
    return {_identity(one) for one in results}


def _identity(device: dict[str, Any]) -> tuple[str, ...]:
    return tuple(device.get(name, "") for name in ("driver", "pool", "device", "shareID"))


def validate_claim_status(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check the reservations, the allocation and the status of devices."""
    status, before = new.get("status", {}), old.get("status", {})
    reserved, allocation = status.get("reservedFor", ()), status.get("allocation")
    path = "status.reservedFor"
    yield from fields.check_size(reserved, _MAX_RESERVATIONS, path)
    yield from check_unique([one.get("uid", "") for one in reserved], path)
    for index, one in enumerate(reserved):
        yield from check_required(one, f"{path}[{index}]", "resource", "name", "uid")
    if reserved and allocation is None:
        yield forbidden(path, "may not be specified when `allocated` is not set")
    elif "deletionTimestamp" in new["metadata"] and any(one not in before.get("reservedFor", ()) for one in reserved):
        message = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield forbidden(path, message)
    if allocation is not None:
        if before.get("allocation") is None:
            yield from _check_allocation(allocation, _request_names(new["spec"]), "status.allocation")
        elif allocation != before["allocation"]:
            yield "status.allocation", INVALID, _IMMUTABLE
    allocated, reported = _allocated(status), status.get("devices", ())
    for index, one in enumerate(reported):
        where, identity = f"status.devices[{index}]", _identity(one)
        if identity not in allocated:
            yield invalid(where, "/".join(filter(None, identity)), "must be an allocated device in the claim")
        yield from fields.check_size(one.get("conditions", ()), _MAX_CONDITIONS, f"{where}.conditions")
    yield from check_unique(["/".join(_identity(one)) for one in reported], "status.devices")


def _check_claim(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    devices = spec.get("devices", {})
    requests = devices.get("requests", ())
    yield from fields.check_names(requests, _MAX_REQUESTS, f"{path}.requests")
    for where, request in each(requests, f"{path}.requests"):
        exactly, alternatives = request.get("exactly"), request.get("firstAvailable", ())
        if exactly is None and not alternatives:
            yield required(where, _ONE_KIND)
        elif exactly is not None and alternatives:
            yield invalid(where, None, f"{_ONE_KIND}, but multiple fields are set")
        elif exactly is not None:
            yield from _check_request(exactly, f"{where}.exactly")
            yield from _check_derived(exactly, f"{where}.exactly", devices, {request.get("name")})
        yield from fields.check_names(alternatives, _MAX_ALTERNATIVES, f"{where}.firstAvailable")
        for number, one in enumerate(alternatives):
            yield from _check_request(one, f"{where}.firstAvailable[{number}]")
            names = {request.get("name"), f"{request.get('name')}/{one.get('name')}"}
            yield from _check_derived(one, f"{where}.firstAvailable[{number}]", devices, names)
    known = _request_names(spec)
    for name, limit, check in (
        ("constraints", _MAX_CONSTRAINTS, _check_constraint),
        ("config", _MAX_SETTINGS, _check_setting),
    ):
        items = devices.get(name, ())
        yield from fields.check_size(items, limit, f"{path}.{name}")
        yield from check_items(items, f"{path}.{name}", check)
        for index, one in enumerate(items):
            yield from _check_request_names(one.get("requests", ()), known, f"{path}.{name}[{index}].requests")


def _check_constraint(constraint: dict[str, Any], path: str) -> Iterator[Cause]:
    kind = next((kind for kind in ("matchAttribute", "distinctAttribute") if constraint.get(kind)), None)
    if kind is None:
        yield required(path, 'exactly one of "matchAttribute" or "distinctAttribute" is required')
        return
    yield from fields.check_qualified_name(constraint[kind], f"{path}.{kind}")


def _check_setting(setting: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check the opaque settings for a driver."""
    opaque = setting.get("opaque")
    if opaque is None:
        yield required(f"{path}.opaque")
        return
    yield from fields.check_driver(opaque.get("driver", ""), f"{path}.opaque.driver")
    parameters, where = opaque.get("parameters"), f"{path}.opaque.parameters"
    if parameters is None:
        yield required(where)
    elif not isinstance(parameters, dict):
        yield invalid(where, "<value omitted>", "must be a valid JSON object")
    else:
        yield from fields.check_length(msgspec.json.encode(parameters).decode(), _MAX_PARAMETERS, where)


def _check_request(request: dict[str, Any], path: str) -> Iterator[Cause]:
    yield from fields.check_text(request.get("deviceClassName", ""), f"{path}.deviceClassName", dns_subdomain)
    yield from fields.check_size(request.get("selectors", ()), _MAX_SELECTORS, f"{path}.selectors")
    mode, count = request["allocationMode"], request.get("count", 0)
    yield from check_choice(mode, _MODES, f"{path}.allocationMode")
    if mode == "All" and count:
        yield invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count <= 0:
        yield invalid(f"{path}.count", count, "must be greater than zero")
    yield from check_items(request.get("tolerations") or (), f"{path}.tolerations", fields.check_toleration)


def _check_derived(
    request: dict[str, Any], path: str, devices: dict[str, Any], names: set[str | None]
) -> Iterator[Cause]:
    """Check the derived attributes of a request with these names: each is used by a constraint."""
    derived, where = request.get("derivedAttributes") or (), f"{path}.derivedAttributes"
    yield from fields.check_size(derived, _MAX_DERIVED, where)
    yield from check_unique([one.get("name", "") for one in derived], where)
    for index, one in enumerate(derived):
        name, at = one.get("name"), f"{where}[{index}]"
        yield from check_required(one, at, "expression")
        if not name:
            yield required(f"{at}.name")
            continue
        yield from fields.check_qualified_name(name, f"{at}.name")
        used = any(
            name in (each.get("matchAttribute"), each.get("distinctAttribute"))
            and (not each.get("requests") or names.intersection(each["requests"]))
            for each in devices.get("constraints") or ()
        )
        if not used:
            yield invalid(f"{at}.name", name, _UNUSED)


def compile_claim(obj: dict[str, Any], features: Features) -> Iterator[Cause]:
    """Check that the expressions of a claim, or of the claims of a template, compile."""
    path, spec = _claim_of(obj)
    total = 0.0
    for index, request in enumerate(spec.get("devices", {}).get("requests", ())):
        where, alternatives = f"{path}.devices.requests[{index}]", request.get("firstAvailable", ())
        requested = [(f"{where}.exactly", request["exactly"])] if request.get("exactly") and not alternatives else []
        requested += [(f"{where}.firstAvailable[{number}]", one) for number, one in enumerate(alternatives)]
        for at, one in requested:
            yield from _check_selectors(one.get("selectors", ()), f"{at}.selectors", features)
            for number, derived in enumerate(one.get("derivedAttributes") or ()):
                if derived.get("expression"):
                    place = f"{at}.derivedAttributes[{number}].expression"
                    cost, causes = _compile(derived["expression"], place, Derivation)
                    total += cost
                    yield from causes
    if total > _MAX_COST:
        yield forbidden(f"{path}.devices", _TOO_EXPENSIVE)


def compile_class(obj: dict[str, Any], features: Features) -> Iterator[Cause]:
    """Check that the selectors of a class compile."""
    yield from _check_selectors(obj.get("spec", {}).get("selectors", ()), "spec.selectors", features)


def _check_selectors(selectors: Sequence[dict[str, Any]], path: str, features: Features) -> Iterator[Cause]:
    lists, shares = features.dra_list_type_attributes, features.dra_consumable_capacity
    for index, one in enumerate(selectors):
        if not one.get("cel"):
            yield required(f"{path}[{index}].cel")
            continue
        where, expression = f"{path}[{index}].cel.expression", one["cel"].get("expression", "")
        yield from _compile(expression, where, lambda text: compile_selector(text, lists, shares))[1]


def _compile(expression: str, path: str, compiled: Callable[[str], Selector | Derivation]) -> tuple[float, list[Cause]]:
    """Return the maximum cost of an expression, 0 if it does not compile, and what is wrong with it."""
    if len(expression.encode()) > _MAX_EXPRESSION:
        return 0, [*fields.check_length(expression, _MAX_EXPRESSION, path)]
    try:
        cost = max_cost(compiled(expression))
    except CompileError as error:
        return 0, [invalid(path, expression, str(error))]
    return cost, [forbidden(path, "too complex, exceeds cost limit")] if cost > _MAX_COST else []


def max_cost(expression: Selector | Derivation) -> float:
    """Return the maximum cost of evaluating an expression on a device."""
    return most_expensive(expression.tree, {"device": _DEVICE})


def _check_allocation(allocation: dict[str, Any], known: set[str], path: str) -> Iterator[Cause]:
    results = allocation.get("devices", {}).get("results", ())
    yield from fields.check_size(results, _MAX_RESULTS, f"{path}.devices.results")
    for where, one in each(results, f"{path}.devices.results"):
        if one.get("request") not in known:
            yield invalid(f"{where}.request", one.get("request", ""), _NO_REQUEST)
        yield from fields.check_driver(one.get("driver", ""), f"{where}.driver")
        yield from fields.check_pool(one.get("pool", ""), f"{where}.pool")
        yield from fields.check_text(one.get("device", ""), f"{where}.device", dns_label)
        yield from fields.check_conditions(one, where)
        yield from check_items(one.get("tolerations") or (), f"{where}.tolerations", fields.check_toleration)
        yield from fields.check_skipped_operations(one, where)
    if allocation.get("nodeSelector"):
        yield from check_node_selector(allocation["nodeSelector"], f"{path}.nodeSelector")


def _request_names(spec: dict[str, Any]) -> set[str]:
    """Return the names of requests, and of alternatives as `request/alternative`."""
    requests = spec.get("devices", {}).get("requests", ())
    names = {one.get("name") for one in requests}
    return names | {f"{one.get('name')}/{sub.get('name')}" for one in requests for sub in one.get("firstAvailable", ())}


def _check_request_names(names: Sequence[str], known: set[str], path: str) -> Iterator[Cause]:
    for index, name in enumerate(names):
        if name not in known:
            yield invalid(f"{path}[{index}]", name, _NO_REQUEST)
    yield from check_unique(names, path)
