"""Converts and validates the fields of a Scenario; every problem has the path of a field."""

import re
from collections.abc import Container, Iterator
from typing import Any

import msgspec

from kubestow.api import quantity
from kubestow.apiserver.kubelets import description
from kubestow.apiserver.rules.names import Wrong, dns_label, dns_subdomain
from kubestow.simulator.contents import KINDS, Object, is_simulated, suggest_kind
from kubestow.simulator.scenario.format import (
    API_VERSION,
    Arrival,
    Distribution,
    Document,
    Event,
    NodeGroup,
    Spec,
    seconds,
)
from kubestow.simulator.settings import MAX_NODES

Problem = tuple[str, str]
"""Path of a field, and problem."""
_PATH = re.compile(r" - at `\$\.?(.*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
NODE_ACTIONS = ("fail", "drain", "cordon", "uncordon", "remove")
_ACTIONS = (*NODE_ACTIONS, "scale", "apply", "delete")
_SCALED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


class FieldsError(ValueError):
    """Fields are invalid; `problems` is never empty."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(f"{path}: {message}" for path, message in problems))
        self.problems = problems


def parse_spec(tree: Any, declared: Container[tuple[str, str]] = ()) -> Spec:
    """Return the validated spec of a Scenario document; raises FieldsError.

    `declared` are the apiVersions and kinds that plugins declare.
    """
    if tree.get("apiVersion") != API_VERSION:
        raise FieldsError(("apiVersion", f"is {tree.get('apiVersion')!r}; this program reads {API_VERSION}"))
    try:
        spec = msgspec.convert(tree, Document).spec
    except msgspec.ValidationError as error:
        raise FieldsError(_split(str(error))) from None
    problems = [(f"spec.{path}", message) for path, message in _spec_problems(spec, declared)]
    if problems:
        raise FieldsError(*problems)
    return spec


def _split(message: str) -> Problem:
    """Split a message of msgspec into path and problem."""
    at = _PATH.search(message)
    path, message = (at[1], message[: at.start()]) if at else ("", message)
    unknown = _UNKNOWN.match(message)
    if unknown:
        return f"{path}.{unknown[1]}".lstrip("."), "unknown field"
    return path, message[0].lower() + message[1:]


# Checks beyond the types


def _spec_problems(spec: Spec, declared: Container[tuple[str, str]]) -> Iterator[Problem]:
    problems = list(_duration_problems(msgspec.to_builtins(spec), ""))
    if problems:
        yield from problems
        return
    for name in ("duration", "sample"):
        if getattr(spec, name) is not None and not seconds(getattr(spec, name)):
            yield name, "must be greater than 0"
    for index, group in enumerate(spec.nodes):
        yield from _group_problems(group, f"nodes[{index}]")
    for index, scaled in enumerate(spec.nodeGroups):
        yield from _node_group_problems(scaled, f"nodeGroups[{index}]")
    for index, arrival in enumerate(spec.arrivals):
        yield from _arrival_problems(arrival, f"arrivals[{index}]", declared)
    for index, event in enumerate(spec.events):
        yield from _event_problems(event, f"events[{index}]", declared)
    for field in ("nodeGroups", "arrivals"):
        names = [one.name for one in getattr(spec, field)]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield f"{field}[{index}].name", f"{name!r} is already used"


_DURATIONS = frozenset(
    {
        *("duration", "sample", "request", "watch", "start", "run", "stop", "exponential", "low", "high", "median"),
        *("every", "begin", "until", "at", "lasts", "delay", "idle"),
    }
)
"""Fields that contain durations."""


def _duration_problems(tree: Any, path: str) -> Iterator[Problem]:
    """Yield the invalid durations of a tree; embedded manifests are skipped."""
    if isinstance(tree, list):
        for index, one in enumerate(tree):
            check = _duration_problem if path.endswith((".times", ".choice")) else _duration_problems
            yield from check(one, f"{path}[{index}]")
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if key in ("pod", "object", "apply", "template", "nodes"):
                continue
            inner = f"{path}.{key}".lstrip(".")
            if key in _DURATIONS and isinstance(value, str | int | float):
                yield from _duration_problem(value, inner)
            else:
                yield from _duration_problems(value, inner)


def _duration_problem(value: Any, path: str) -> Iterator[Problem]:
    try:
        seconds(value)
    except ValueError as error:
        yield path, str(error)


def _group_problems(group: description.Group, path: str) -> Iterator[Problem]:
    if group.count > MAX_NODES:
        yield f"{path}.count", f"{group.count} nodes exceed the limit of {MAX_NODES}"
    if group.count > 1 and "{}" not in group.name:
        yield f"{path}.name", "needs {} for the number, as in small-{}"
    amounts = {name: getattr(group, name) for name in ("count", "cpu", "memory", "pods", "storage")}
    for name, amount in {
        **amounts,
        **{f"resources.{name}": amount for name, amount in group.resources.items()},
    }.items():
        try:
            if quantity.nano(amount) < 0:
                yield f"{path}.{name}", "must not be negative"
        except quantity.QuantityError as error:
            yield f"{path}.{name}", str(error)


def _node_group_problems(scaled: NodeGroup, path: str) -> Iterator[Problem]:
    yield from _name_problems(scaled.name, dns_subdomain, f"{path}.name")
    yield from _group_problems(scaled.template, f"{path}.template")
    if scaled.min > scaled.max:
        yield f"{path}.min", f"must be between 0 and max, which is {scaled.max}"
    plain = description.Group()
    for field, instead in (("count", "set min and max"), ("name", "set the group's name")):
        if getattr(scaled.template, field) != getattr(plain, field):
            yield f"{path}.template.{field}", f"does not apply here; {instead}"


def _name_problems(name: str, check: Wrong, path: str) -> Iterator[Problem]:
    for message in check(name):
        yield path, f"{name!r}: {message}"


def _arrival_problems(arrival: Arrival, path: str, declared: Container[tuple[str, str]]) -> Iterator[Problem]:
    yield from _name_problems(arrival.name, dns_subdomain, f"{path}.name")
    yield from _name_problems(arrival.namespace, dns_label, f"{path}.namespace")
    if (arrival.pod is None) == (arrival.object is None):
        yield path, "needs either pod or object"
    elif arrival.object is not None:
        yield from _object_problems(arrival.object, f"{path}.object", declared)
        if arrival.run is not None:
            yield f"{path}.run", "does not apply to an object; its pods define their run time"
    else:
        for name in ("metadata", "spec"):
            if not isinstance((arrival.pod or {}).get(name, {}), dict):
                yield f"{path}.pod.{name}", "expected `object`"
    for field in ("pod", "object"):
        metadata = (getattr(arrival, field) or {}).get("metadata")
        namespace = metadata.get("namespace", arrival.namespace) if isinstance(metadata, dict) else arrival.namespace
        if namespace != arrival.namespace:
            message = f"is {namespace!r}, but the arrival's is {arrival.namespace!r}; set it there"
            yield f"{path}.{field}.metadata.namespace", message
    if sum(one is not None for one in (arrival.times, arrival.poisson, arrival.trace)) != 1:
        yield path, "needs one of times, poisson and trace"
    if arrival.poisson is not None and not seconds(arrival.poisson.every):
        yield f"{path}.poisson.every", "must be greater than 0"
    if arrival.poisson is not None and arrival.until is None and arrival.count is None:
        yield path, "needs until or count; otherwise it never ends"
    if arrival.until is not None and seconds(arrival.until) <= seconds(arrival.begin):
        yield f"{path}.until", f"must be later than begin, which is {arrival.begin}: nothing would arrive"
    if isinstance(arrival.run, Distribution):
        uniform = arrival.run.uniform
        if sum(value is not None for value in msgspec.structs.astuple(arrival.run)) != 1:
            yield f"{path}.run", "needs one of exponential, uniform, lognormal and choice"
        elif uniform is not None and seconds(uniform.low) > seconds(uniform.high):
            yield f"{path}.run.uniform.low", f"must not be more than high, which is {uniform.high}"


def _event_problems(event: Event, path: str, declared: Container[tuple[str, str]]) -> Iterator[Problem]:
    chosen = [name for name in _ACTIONS if getattr(event, name) is not None]
    if len(chosen) != 1:
        yield path, f"needs one of {', '.join(_ACTIONS)}"
        return
    (action,) = chosen
    nodes = getattr(event, action)
    if action in NODE_ACTIONS and sum(one is not None for one in (nodes.names, nodes.labels, nodes.count)) != 1:
        yield f"{path}.{action}", "needs one of names, labels and count"
    if event.lasts is not None and action not in ("fail", "drain", "cordon"):
        yield f"{path}.lasts", f"does not apply to {action}"
    if event.scale is not None and event.scale.kind not in _SCALED:
        yield f"{path}.scale.kind", f"{event.scale.kind!r} has no replicas; use one of {', '.join(_SCALED)}"
    if event.delete is not None and event.delete.kind not in KINDS:
        yield f"{path}.delete.kind", f"there is no kind {event.delete.kind!r}; write it as in manifests, such as Pod"
    for index, obj in enumerate(event.apply or ()):
        yield from _object_problems(obj, f"{path}.apply[{index}]", declared, named=True)


def _object_problems(
    obj: Object, path: str, declared: Container[tuple[str, str]], *, named: bool = False
) -> Iterator[Problem]:
    metadata = obj.get("metadata", {})
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if not is_simulated(obj) and (str(version), str(kind)) not in declared:
        suggestion = suggest_kind(str(version), str(kind))
        advice = f"did you mean {suggestion}?" if suggestion else "write apiVersion and kind as in manifests"
        yield f"{path}.kind", f"{kind!r} ({version!r}) is not supported in a simulation; {advice}"
    if not isinstance(metadata, dict) or (named and not isinstance(metadata.get("name"), str)):
        yield f"{path}.metadata", "needs a name" if isinstance(metadata, dict) else "expected `object`"
