"""Executes the events of a scenario: nodes fail, are drained or removed; workloads are scaled, applied, deleted."""

import random
from collections.abc import Callable
from functools import partial

from kubestow.api.files import ObjectsError
from kubestow.api.node import Node
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.eviction import evict
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.resources import BY_KIND
from kubestow.simulator.contents import ObjectError
from kubestow.simulator.results import format_duration
from kubestow.simulator.scenario.foreign import Planned
from kubestow.simulator.scenario.format import Event, Nodes, Object, seconds
from kubestow.simulator.scenario.places import Place
from kubestow.simulator.simulation import Action, Simulation

READY = "kubestow.dev/ready"
_DRAIN_RETRY_SECONDS = 5.0
"""As in `kubectl drain` when a disruption budget allows no eviction."""


def plan(event: Event, place: Place, seed: str, simulation: Simulation) -> None:
    """Plan an event for its time."""
    simulation.at(seconds(event.at), partial(_happen, event, place, seed))


def _happen(event: Event, place: Place, seed: str, simulation: Simulation) -> None:
    for name, act, undo in _NODE_ACTIONS:
        chosen: Nodes | None = getattr(event, name)
        if chosen is not None:
            names = _chosen(chosen, place.at(name), seed, simulation)
            for node in names:
                act(simulation, node)
            if event.lasts is not None and undo is not None:
                simulation.at(simulation.time + seconds(event.lasts), partial(_to_each, undo, names))
    for field, target in (("scale", event.scale), ("delete", event.delete)):
        if target is not None and simulation.get(target.kind, target.name, target.namespace) is None:
            raise _missing(place.at(f"{field}.name"), f"{target.kind} {target.namespace}/{target.name}", simulation)
    if event.scale is not None:
        wanted = event.scale
        with place.at("scale").report_errors():
            simulation.update(
                wanted.kind, wanted.name, lambda one: one["spec"].update(replicas=wanted.replicas), wanted.namespace
            )
    if event.delete is not None:
        with place.at("delete").report_errors():
            simulation.delete(event.delete.kind, event.delete.name, event.delete.namespace)
    for index, obj in enumerate(event.apply or ()):
        with place.at(f"apply[{index}]").report_errors():
            apply(simulation, obj)


def _missing(place: Place, what: str, simulation: Simulation) -> ObjectsError:
    return ObjectsError([place.describe(f"there is no {what} at {format_duration(simulation.time)}")])


def apply(simulation: Simulation, obj: Object) -> None:
    """Create an object, or update the existing one."""
    metadata = obj.get("metadata", {})
    kind, name, namespace = str(obj.get("kind")), metadata.get("name", ""), metadata.get("namespace", "default")
    if simulation.get(kind, name, namespace) is None:
        simulation.add(obj)
        return

    def alter(current: Object) -> None:
        for field in ("labels", "annotations"):
            if field in metadata:
                current["metadata"][field] = metadata[field]
        current.update({key: value for key, value in obj.items() if key not in ("metadata", "status")})

    simulation.update(kind, name, alter, namespace)


def change(planned: Planned, simulation: Simulation) -> None:
    """Execute a change from a file of another tool; changes of missing objects are ignored."""
    try:
        _change(planned.op, planned.object, simulation)
    except ObjectError as error:
        raise ObjectsError([f"{planned.place}: {error}"]) from None


def _change(op: str, obj: Object, simulation: Simulation) -> None:
    metadata = obj.get("metadata", {})
    kind, name, namespace = str(obj.get("kind")), metadata.get("name", ""), metadata.get("namespace", "default")
    name_of_kind = (str(obj.get("apiVersion")), kind)
    if name_of_kind not in BY_KIND and name_of_kind not in simulation.plane.declared:
        return
    current = simulation.get(kind, name, namespace)
    if op == "apply" and (current is None or kind != "Pod"):
        apply(simulation, obj)
    elif op == "delete" and current is not None:
        simulation.delete(kind, name, namespace)
    elif op == "patch" and current is not None and kind != "Pod":
        simulation.update(kind, name, lambda one: _merge(one, {**obj, "status": {}}), namespace)


def _merge(current: Object, changes: Object) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(current.get(key), dict):
            _merge(current[key], value)
        elif value is None:
            current.pop(key, None)
        elif value != {}:
            current[key] = value


def _to_each(act: Callable[[Simulation, str], None], names: list[str], simulation: Simulation) -> None:
    for name in names:
        if simulation.get("Node", name) is not None:
            act(simulation, name)


def _chosen(nodes: Nodes, place: Place, seed: str, simulation: Simulation) -> list[str]:
    present: dict[str, Node] = {key: obj for (kind, key), obj in simulation.plane.current.items() if kind is Node}
    if nodes.names is not None:
        for index, name in enumerate(nodes.names):
            if name not in present:
                raise _missing(place.at(f"names[{index}]"), f"Node {name}", simulation)
        return nodes.names
    if nodes.labels is not None:
        wanted = nodes.labels.items()
        found = [name for name, node in present.items() if wanted <= node.metadata.labels.items()]
        if not found:
            note = f"no node had these labels at {format_duration(simulation.time)}, so nothing happened"
            simulation.notes.append(place.at("labels").describe(note))
        return found
    count = nodes.count or 0
    if count > len(present):
        note = f"there were only {len(present)} nodes at {format_duration(simulation.time)}"
        simulation.notes.append(place.at("count").describe(note))
    return random.Random(seed).sample(list(present), min(count, len(present)))


def _report_ready(ready: str, simulation: Simulation, node: str) -> None:
    """Make the kubelet of a node report the given readiness."""

    def alter(one: Object) -> None:
        one["metadata"].setdefault("annotations", {})[READY] = ready

    simulation.update("Node", node, alter)


def _cordon(simulation: Simulation, node: str) -> None:
    simulation.update("Node", node, lambda one: one.setdefault("spec", {}).update(unschedulable=True))


def _uncordon(simulation: Simulation, node: str) -> None:
    simulation.update("Node", node, lambda one: one.get("spec", {}).pop("unschedulable", None))


def _drain(simulation: Simulation, node: str) -> None:
    _cordon(simulation, node)
    _evict(node, simulation)


def _evict(node: str, simulation: Simulation) -> None:
    plane, bulk = simulation.plane, simulation.bulk
    bulk.put_in_store(bulk.keys_on(node))
    rejected = False
    for record in plane.pods.on_node(node):
        owners = record.object()["metadata"].get("ownerReferences", ())
        if any(one.get("kind") == "DaemonSet" for one in owners) or b'"deletionTimestamp":"' in record.body:
            continue
        try:
            evict(plane.remover, record.namespace, record.name, None, {}, Intent())
        except ApiError as error:
            if error.code != 429:
                raise
            rejected = True
    current = simulation.get("Node", node)
    if rejected and current is not None and current.get("spec", {}).get("unschedulable"):
        action: Action = partial(_evict, node)
        simulation.at(simulation.time + _DRAIN_RETRY_SECONDS, action)


NodeAction = Callable[[Simulation, str], None]

_NODE_ACTIONS: tuple[tuple[str, NodeAction, NodeAction | None], ...] = (
    ("fail", partial(_report_ready, "unknown"), partial(_report_ready, "true")),
    ("drain", _drain, _uncordon),
    ("cordon", _cordon, _uncordon),
    ("uncordon", _uncordon, None),
    ("remove", lambda simulation, node: simulation.delete("Node", node), None),
)
"""Name, action and reverse action of the events on nodes."""
