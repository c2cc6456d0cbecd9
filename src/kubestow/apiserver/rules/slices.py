"""Rules for offered devices: resource slices, and rules that taint devices.

Either a slice or each of its devices names the nodes that can use them. Devices share counters, and a device divides
its capacity by a policy on the size of the parts.
"""

from collections.abc import Iterator
from typing import Any

from kubestow.api import quantity
from kubestow.api.cel.library.semver import Semver
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules import device_fields as fields
from kubestow.apiserver.rules.causes import forbidden, invalid, required
from kubestow.apiserver.rules.lists import check_items, check_unique, each
from kubestow.apiserver.rules.names import INVALID, check_name, dns_label, dns_subdomain
from kubestow.apiserver.rules.placement import check_node_selector
from kubestow.config.features import Features

MAX_ATTRIBUTES, MAX_VALUE_LENGTH = 32, 64
_MAX_VALUES = 48
"""Maximum number of attribute values of a device, including those in lists."""
_KINDS = ("int", "bool", "string", "version")
_LISTS = tuple(f"{kind}s" for kind in _KINDS)
_VALUES = {f"{kind}{many}": f"{kind.capitalize()}Value{many}" for many in ("", "s") for kind in _KINDS}
"""Names of the types of attributes in kube-apiserver's message for an attribute with a value and an empty list."""
_ALL_VALUES = ", ".join(f"`{kind}`" for kind in _VALUES)
_MAX_DEVICES, _MAX_ADVANCED_DEVICES, _MAX_COUNTER_SETS = 128, 64, 8
_MAX_TAINTS, _MAX_COUNTERS, _MAX_CONSUMED_SETS, _MAX_COMPATIBLE, _MAX_VALID_VALUES = 16, 32, 2, 2, 10
_IMMUTABLE = "Invalid value: field is immutable"
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE = f"exactly one of {', '.join(f'`{name}`' for name in _PLACES)} is required"
_EACH = "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
_ONE_PLACE_EACH = f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when {_EACH}"
_NO_PLACE_EACH = f"`nodeName`, `nodeSelector` and `allNodes` can only be set if {_EACH}"


def validate_slice(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the driver, the pool, the nodes and the devices of a slice."""
    spec = obj.get("spec", {})
    yield from fields.check_driver(spec.get("driver", ""), "spec.driver")
    pool = spec.get("pool", {})
    yield from fields.check_pool(pool.get("name", ""), "spec.pool.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        yield invalid("spec.pool.resourceSliceCount", count, "must be greater than zero")
    if generation < 0:
        yield invalid("spec.pool.generation", generation, "must be greater than or equal to zero")
    yield from _check_nodes(spec, "spec")
    places = [name for name in _PLACES if spec.get(name)]
    if not places:
        yield required("spec", _ONE_PLACE)
    elif len(places) > 1:
        yield invalid("spec", _all_of(places), f"{_ONE_PLACE}, but multiple fields are set")
    terms = (spec.get("nodeSelector") or {}).get("nodeSelectorTerms", ())
    if len(terms) > 1:
        message = f"Invalid value: {len(terms)} terms: must have exactly one node selector term"
        yield "spec.nodeSelector.nodeSelectorTerms", INVALID, message
    devices, counters = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and counters is not None:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    advanced = any(one.get("taints") or one.get("consumesCounters") for one in devices or ())
    yield from fields.check_names(devices or (), _MAX_ADVANCED_DEVICES if advanced else _MAX_DEVICES, "spec.devices")
    yield from fields.check_names(counters or (), _MAX_COUNTER_SETS, "spec.sharedCounters")
    yield from check_items(counters or (), "spec.sharedCounters", _check_counters)
    for index, device in enumerate(devices or ()):
        yield from _check_device(device, f"spec.devices[{index}]", by_device=bool(spec.get("perDeviceNodeSelection")))
    yield from fields.check_skipped_operations(spec, "spec")
    if spec.get("partitionTypeAttribute") is not None:
        yield from _check_partitions(spec, "spec")


def validate_slice_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that driver, pool and node are unchanged."""
    now, was = new.get("spec", {}), old["spec"]
    if now.get("pool", {}).get("name") != was["pool"]["name"]:
        yield "spec.pool.name", INVALID, _IMMUTABLE
    for name in ("driver", "nodeName"):
        if now.get(name) != was.get(name):
            yield f"spec.{name}", INVALID, _IMMUTABLE


def drop_disabled_fields(new: dict[str, Any], old: dict[str, Any] | None, features: Features) -> None:
    """Drop the fields of disabled features, unless the old slice has some of them."""
    for enabled, parts, names in (
        (features.dra_list_type_attributes, _attributes, _LISTS),
        (features.dra_node_allocatable_resources, _devices, ("nodeAllocatableResources",)),
        (features.dra_device_compatibility_groups, _consumed, ("compatibilityGroups",)),
        (features.dra_partitionable_devices_type, _spec, ("partitionTypeAttribute",)),
        (features.dra_optional_node_operations, _spec, ("skipNodeOperations",)),
    ):
        if not enabled and not any(one.keys() & names for one in parts(old or {})):
            for part in parts(new):
                for name in part.keys() & names:
                    del part[name]


def _spec(obj: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield obj.get("spec", {})


def _devices(obj: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from obj.get("spec", {}).get("devices") or ()


def _attributes(obj: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for device in _devices(obj):
        yield from (device.get("attributes") or {}).values()


def _consumed(obj: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for device in _devices(obj):
        yield from device.get("consumesCounters") or ()


def set_taint_times(obj: dict[str, Any], _: dict[str, Any] | None, now: str) -> None:
    """Set the time of taints without one."""
    for device in _devices(obj):
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", now)


def set_taint_rule_time(obj: dict[str, Any], old: dict[str, Any] | None, now: str) -> None:
    """Set the time of the taint if it has none, or when its effect changes."""
    taint: dict[str, Any] = obj.get("spec", {}).get("taint", {})
    taint.setdefault("timeAdded", now)
    before = old["spec"]["taint"] if old is not None else taint
    if taint.get("effect") != before.get("effect") and taint["timeAdded"] == before.get("timeAdded"):
        taint["timeAdded"] = now


def validate_taint_rule(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the taint and the device selector of a rule."""
    spec = obj.get("spec", {})
    selector = spec.get("deviceSelector") or {}
    if "driver" in selector:
        yield from fields.check_driver(selector["driver"], "spec.deviceSelector.driver")
    if "pool" in selector:
        yield from fields.check_pool(selector["pool"], "spec.deviceSelector.pool")
    if "device" in selector:
        yield from fields.check_text(selector["device"], "spec.deviceSelector.device", dns_label)
    yield from fields.check_taint(spec.get("taint", {}), "spec.taint")


def _check_nodes(owner: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check the nodes that a slice or a device names."""
    for name in ("allNodes", "perDeviceNodeSelection"):
        if owner.get(name) is False:
            yield invalid(f"{path}.{name}", False, "must be either unset or set to true")
    if owner.get("nodeName"):
        yield from check_name(f"{path}.nodeName", owner["nodeName"], dns_subdomain)
    if owner.get("nodeSelector"):
        yield from check_node_selector(owner["nodeSelector"], f"{path}.nodeSelector")


def _check_partitions(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check that each device that consumes counters has the attribute that names its type."""
    name, where = spec["partitionTypeAttribute"], f"{path}.partitionTypeAttribute"
    consuming = [(index, one) for index, one in enumerate(spec.get("devices") or ()) if one.get("consumesCounters")]
    if not consuming:
        yield invalid(where, name, "may only be set on a slice which declares devices that consume counters")
        return
    problems = list(fields.check_qualified_name(name, where))
    yield from problems
    bare = name.removeprefix(f"{spec.get('driver', '')}/")
    for index, device in () if problems else consuming:
        attributes, at = device.get("attributes") or {}, f"{path}.devices[{index}].attributes[{name}]"
        attribute = attributes.get(name) or attributes.get(bare)
        if attribute is None:
            why = "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"
            yield required(at, why)
        elif "string" not in attribute:
            why = "must be a string value because `partitionTypeAttribute` names this attribute"
            yield invalid(at, attribute, why)


def _all_of(names: list[str]) -> str:
    return "{" + ", ".join(f"`{name}`" for name in names) + "}"


def _check_device(device: dict[str, Any], path: str, *, by_device: bool) -> Iterator[Cause]:
    attributes, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    size = len(attributes) + len(capacities)
    if size > MAX_ATTRIBUTES:
        yield invalid(path, size, f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}")
    values = sum(sum(len(one.get(kind) or ()) for kind in _LISTS) or 1 for one in attributes.values())
    if values > _MAX_VALUES:
        yield invalid(path, values, f"the total number of attribute values must not exceed {_MAX_VALUES}")
    for name, attribute in attributes.items():
        yield from fields.check_attribute_name(name, f"{path}.attributes")
        yield from _check_attribute(attribute, f"{path}.attributes[{name}]")
    for name, capacity in capacities.items():
        yield from fields.check_attribute_name(name, f"{path}.capacity")
        policy, where = capacity.get("requestPolicy"), f"{path}.capacity[{name}].requestPolicy"
        if policy is not None and not device.get("allowMultipleAllocations"):
            yield forbidden(where, "allowMultipleAllocations must be true")
        elif policy is not None:
            yield from _check_policy(policy, capacity.get("value", "0"), where)
    taints = device.get("taints") or ()
    yield from fields.check_size(taints, _MAX_TAINTS, f"{path}.taints")
    yield from check_items(taints, f"{path}.taints", fields.check_taint)
    consumed = device.get("consumesCounters") or ()
    yield from fields.check_size(consumed, _MAX_CONSUMED_SETS, f"{path}.consumesCounters")
    for where, one in each(consumed, f"{path}.consumesCounters"):
        yield from fields.check_text(one.get("counterSet", ""), f"{where}.counterSet", dns_label)
        yield from _check_counters(one, where)
        groups = one.get("compatibilityGroups") or ()
        yield from fields.check_size(groups, _MAX_COMPATIBLE, f"{where}.compatibilityGroups")
        yield from check_unique(groups, f"{where}.compatibilityGroups")
        for number, name in enumerate(groups):
            yield from check_name(f"{where}.compatibilityGroups[{number}]", name, dns_label)
    yield from check_unique([one.get("counterSet", "") for one in consumed], f"{path}.consumesCounters")
    yield from _check_device_nodes(device, path, by_device=by_device)
    yield from fields.check_conditions(device, path)


def _check_device_nodes(device: dict[str, Any], path: str, *, by_device: bool) -> Iterator[Cause]:
    if not by_device:
        if any(name in device for name in _PLACES[:3]):
            yield invalid(path, None, _NO_PLACE_EACH)
        return
    yield from _check_nodes(device, path)
    places = [name for name in _PLACES[:3] if device.get(name)]
    if not places:
        yield required(path, _ONE_PLACE_EACH)
    elif len(places) > 1:
        yield invalid(path, _all_of(places), _ONE_PLACE_EACH)


def _check_attribute(attribute: dict[str, Any], path: str) -> Iterator[Cause]:
    given = {kind: value for kind, value in attribute.items() if value is not None}
    for kind in _LISTS:
        if given.get(kind) == []:
            yield invalid(f"{path}.{kind}", [], "must not be empty if specified")
    for kind in ("string", "version"):
        texts = [(f"{path}.{kind}", given[kind])] if kind in given else []
        texts += [(f"{path}.{kind}s[{index}]", value) for index, value in enumerate(given.get(f"{kind}s", ()))]
        for where, value in texts:
            if kind == "version":
                yield from _check_version(value, where)
            yield from fields.check_length(value, MAX_VALUE_LENGTH, where)
    filled, of_all = [kind for kind in _VALUES if given.get(kind) not in (None, [])], f"one of: {_ALL_VALUES}"
    if not filled:
        yield invalid(path, "", f"must specify {of_all}")
    elif len(filled) > 1:
        yield invalid(path, f"{{{', '.join(filled)}}}", f"must specify exactly {of_all}")
    elif len(given) > 1:
        values = {name: given.get(kind) for kind, name in _VALUES.items()}
        yield invalid(path, values, "exactly one value must be specified")


def _check_version(value: str, path: str) -> Iterator[Cause]:
    try:
        Semver(value)
    except ValueError:
        yield invalid(path, value, "must be a string compatible with semver.org spec 2.0.0")


def _check_counters(owner: dict[str, Any], path: str) -> Iterator[Cause]:
    counters = owner.get("counters") or {}
    if not counters:
        yield required(f"{path}.counters")
    yield from fields.check_size(counters, _MAX_COUNTERS, f"{path}.counters")
    for name in counters:
        yield from check_name(f"{path}.counters", name, dns_label)


def _check_policy(policy: dict[str, Any], capacity: str, path: str) -> Iterator[Cause]:
    """Check the policy on requests of a capacity: valid values or a range with steps, and a default."""
    values, bounds = policy.get("validValues") or (), policy.get("validRange")
    default: str | None = policy.get("default")
    if values and bounds is not None:
        message = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield forbidden(path, message)
    elif default is None:
        if values or bounds is not None:
            kind = "validValues" if values else "validRange"
            yield required(f"{path}.default", f"required when {kind} is defined")
    elif values:
        yield from _check_values(values, default, capacity, f"{path}.validValues")
    elif bounds is not None:
        yield from _check_range(bounds, default, capacity, f"{path}.validRange")


def _check_values(values: list[str], default: str, capacity: str, path: str) -> Iterator[Cause]:
    amounts = [quantity.nano(one) for one in values]
    yield from fields.check_size(values, _MAX_VALID_VALUES, path)
    for index, one in enumerate(amounts):
        where = f"{path}[{index}]"
        if index and amounts[index - 1] > one:
            yield invalid(where, values[index], "values must be sorted in ascending order")
        if one > quantity.nano(capacity):
            yield invalid(where, values[index], f"option is larger than capacity value: {capacity}")
    yield from check_unique(values, path)
    if quantity.nano(default) not in amounts:
        yield invalid(path, default, "default value is not valid according to the requestPolicy")


def _check_range(bounds: dict[str, str], default: str, capacity: str, path: str) -> Iterator[Cause]:
    minimum, maximum, step = bounds.get("min"), bounds.get("max"), bounds.get("step")
    if minimum is None:  # The schema check reports it.
        return
    low, initial, total = quantity.nano(minimum), quantity.nano(default), quantity.nano(capacity)
    if low > total:
        yield invalid(f"{path}.min", minimum, f"min is larger than capacity value: {capacity}")
    if initial < low:
        yield invalid(f"{path}.default", default, f"default is less than min: {minimum}")
    if maximum is not None:
        high = quantity.nano(maximum)
        if low > high:
            yield invalid(f"{path}.max", minimum, f"min is larger than max: {maximum}")
        if high > total:
            yield invalid(f"{path}.max", maximum, f"max is larger than capacity value: {capacity}")
        if initial > high:
            yield invalid(f"{path}.default", default, f"default is more than max: {maximum}")
    if step is None:
        return
    stride = quantity.nano(step)
    if stride <= 0:
        yield invalid(f"{path}.step", step, "must be greater than zero")
        return
    if low + stride > total:
        message = f"one step {quantity.format_nano(low + stride)} is larger than capacity value: {capacity}"
        yield invalid(f"{path}.step", step, message)
    for value in (default, *(() if maximum is None else (maximum,))):
        if (quantity.nano(value) - low) % stride:
            yield invalid(f"{path}.step", value, f"value is not a multiple of a given step ({step}) from ({minimum})")
