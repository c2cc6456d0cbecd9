"""A Scenario's fields from a tree of YAML, or all that is wrong with them, by the path of each field."""

import re
from collections.abc import Iterator
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
"""The path of a field, and what is wrong with it."""
_PATH = re.compile(r" - at `\$\.?(.*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
NODE_ACTIONS = ("fail", "drain", "cordon", "uncordon", "remove")
_ACTIONS = (*NODE_ACTIONS, "scale", "apply", "delete")
_SCALED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


class FieldsError(ValueError):
    """Fields that cannot be used; `problems` is never empty."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(f"{path}: {message}" for path, message in problems))
        self.problems = problems


def spec_of(tree: Any) -> Spec:
    """The spec of a Scenario as it is written; raises FieldsError."""
    if tree.get("apiVersion") != API_VERSION:
        raise FieldsError(("apiVersion", f"is {tree.get('apiVersion')!r}; this program reads {API_VERSION}"))
    try:
        spec = msgspec.convert(tree, Document).spec
    except msgspec.ValidationError as error:
        raise FieldsError(_split(str(error))) from None
    problems = [(f"spec.{path}", message) for path, message in _wrong(spec)]
    if problems:
        raise FieldsError(*problems)
    return spec


def _split(message: str) -> Problem:
    """The path and the message of what msgspec says."""
    at = _PATH.search(message)
    path, said = (at[1], message[: at.start()]) if at else ("", message)
    unknown = _UNKNOWN.match(said)
    if unknown:
        return f"{path}.{unknown[1]}".lstrip("."), "is not a field that there is"
    return path, said[0].lower() + said[1:]


# What the types cannot say


def _wrong(spec: Spec) -> Iterator[Problem]:
    no_spans = list(_no_spans(msgspec.to_builtins(spec), ""))
    if no_spans:
        yield from no_spans
        return
    for name in ("duration", "sample"):
        if getattr(spec, name) is not None and not seconds(getattr(spec, name)):
            yield name, "must be more than nothing"
    for index, group in enumerate(spec.nodes):
        yield from _wrong_group(group, f"nodes[{index}]")
    for index, scaled in enumerate(spec.nodeGroups):
        yield from _wrong_scaling(scaled, f"nodeGroups[{index}]")
    for index, arrival in enumerate(spec.arrivals):
        yield from _wrong_arrival(arrival, f"arrivals[{index}]")
    for index, event in enumerate(spec.events):
        yield from _wrong_event(event, f"events[{index}]")
    for field in ("nodeGroups", "arrivals"):
        names = [one.name for one in getattr(spec, field)]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield f"{field}[{index}].name", f"{name!r} is the name of another one, too"


_SPANS = frozenset(
    {
        *("duration", "sample", "request", "watch", "start", "run", "stop", "exponential", "low", "high", "median"),
        *("every", "begin", "until", "at", "lasts", "delay", "idle"),
    }
)
"""Fields that are durations."""


def _no_spans(tree: Any, path: str) -> Iterator[Problem]:
    """Durations that are none, wherever they are; manifests of other people's are left alone."""
    if isinstance(tree, list):
        for index, one in enumerate(tree):
            is_span = path.endswith((".times", ".choice"))
            yield from _no_spans(one, f"{path}[{index}]") if not is_span else _no_span(one, f"{path}[{index}]")
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if key in ("pod", "object", "apply", "template", "nodes"):
                continue
            inner = f"{path}.{key}".lstrip(".")
            if key in _SPANS and isinstance(value, str | int | float):
                yield from _no_span(value, inner)
            else:
                yield from _no_spans(value, inner)


def _no_span(value: Any, path: str) -> Iterator[Problem]:
    try:
        seconds(value)
    except ValueError as error:
        yield path, str(error)


def _wrong_group(group: description.Group, path: str) -> Iterator[Problem]:
    if group.count > MAX_NODES:
        yield f"{path}.count", f"{group.count} nodes are more than a simulation has room for, {MAX_NODES}"
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


def _wrong_scaling(scaled: NodeGroup, path: str) -> Iterator[Problem]:
    yield from _wrong_name(scaled.name, dns_subdomain, f"{path}.name")
    yield from _wrong_group(scaled.template, f"{path}.template")
    if scaled.min > scaled.max:
        yield f"{path}.min", f"must be between 0 and max, which is {scaled.max}"
    plain = description.Group()
    for field, instead in (("count", "min and max say how many there are"), ("name", "the group has one")):
        if getattr(scaled.template, field) != getattr(plain, field):
            yield f"{path}.template.{field}", f"has no meaning here: {instead}"


def _wrong_name(name: str, wrong: Wrong, path: str) -> Iterator[Problem]:
    for said in wrong(name):
        yield path, f"{name!r}: {said}"


def _wrong_arrival(arrival: Arrival, path: str) -> Iterator[Problem]:
    yield from _wrong_name(arrival.name, dns_subdomain, f"{path}.name")
    yield from _wrong_name(arrival.namespace, dns_label, f"{path}.namespace")
    if (arrival.pod is None) == (arrival.object is None):
        yield path, "needs either a pod or an object"
    elif arrival.object is not None:
        yield from _wrong_object(arrival.object, f"{path}.object")
        if arrival.run is not None:
            yield f"{path}.run", "has no meaning for an object; its pods say how long they run"
    else:
        for name in ("metadata", "spec"):
            if not isinstance((arrival.pod or {}).get(name, {}), dict):
                yield f"{path}.pod.{name}", "expected `object`"
    for field in ("pod", "object"):
        metadata = (getattr(arrival, field) or {}).get("metadata")
        given = metadata.get("namespace", arrival.namespace) if isinstance(metadata, dict) else arrival.namespace
        if given != arrival.namespace:
            said = f"is {given!r}, and that of the arrival is {arrival.namespace!r}; say it there"
            yield f"{path}.{field}.metadata.namespace", said
    if sum(one is not None for one in (arrival.times, arrival.poisson, arrival.trace)) != 1:
        yield path, "needs one of times, poisson and trace"
    if arrival.poisson is not None and not seconds(arrival.poisson.every):
        yield f"{path}.poisson.every", "must be more than nothing"
    if arrival.poisson is not None and arrival.until is None and arrival.count is None:
        yield path, "needs until or count: chance alone never ends"
    if arrival.until is not None and seconds(arrival.until) <= seconds(arrival.begin):
        yield f"{path}.until", f"must be later than begin, which is {arrival.begin}: nothing would come"
    if isinstance(arrival.run, Distribution):
        uniform = arrival.run.uniform
        if sum(value is not None for value in msgspec.structs.astuple(arrival.run)) != 1:
            yield f"{path}.run", "needs one of exponential, uniform, lognormal and choice"
        elif uniform is not None and seconds(uniform.low) > seconds(uniform.high):
            yield f"{path}.run.uniform.low", f"must not be more than high, which is {uniform.high}"


def _wrong_event(event: Event, path: str) -> Iterator[Problem]:
    chosen = [name for name in _ACTIONS if getattr(event, name) is not None]
    if len(chosen) != 1:
        yield path, f"needs one of {', '.join(_ACTIONS)}"
        return
    (action,) = chosen
    nodes = getattr(event, action)
    if action in NODE_ACTIONS and sum(one is not None for one in (nodes.names, nodes.labels, nodes.count)) != 1:
        yield f"{path}.{action}", "needs one of names, labels and count"
    if event.lasts is not None and action not in ("fail", "drain", "cordon"):
        yield f"{path}.lasts", f"has no meaning for {action}"
    if event.scale is not None and event.scale.kind not in _SCALED:
        yield f"{path}.scale.kind", f"{event.scale.kind!r} has no replicas; those that do are {', '.join(_SCALED)}"
    if event.delete is not None and event.delete.kind not in KINDS:
        yield f"{path}.delete.kind", f"there is no kind {event.delete.kind!r}; write it as in manifests, such as Pod"
    for index, obj in enumerate(event.apply or ()):
        yield from _wrong_object(obj, f"{path}.apply[{index}]", named=True)


def _wrong_object(obj: Object, path: str, *, named: bool = False) -> Iterator[Problem]:
    metadata = obj.get("metadata", {})
    if not is_simulated(obj):
        kind, version = obj.get("kind"), obj.get("apiVersion")
        meant = suggest_kind(str(version), str(kind))
        advice = f"did you mean {meant}?" if meant else "write apiVersion and kind as in manifests"
        yield f"{path}.kind", f"{kind!r} ({version!r}) has no part in a simulation; {advice}"
    if not isinstance(metadata, dict) or (named and not isinstance(metadata.get("name"), str)):
        yield f"{path}.metadata", "needs a name" if isinstance(metadata, dict) else "expected `object`"
