"""Finds events on objects that cannot exist at their time, before the run.

An object may exist from the start, be applied by an earlier event or by a file of another tool, or be created by
arrivals and node groups. The names that controllers generate are unknown, so only kinds that users create are checked.
Objects deleted in the meantime are detected when the event happens.
"""

import re
from collections.abc import Iterator

from kubestow.apiserver.kubelets import description
from kubestow.simulator.results import format_duration
from kubestow.simulator.scenario.format import Event, Object, seconds
from kubestow.simulator.scenario.reading import Scenario
from kubestow.simulator.scenario.rules import NODE_ACTIONS, Problem

_USER_CREATED = ("Node", "Deployment", "StatefulSet", "DaemonSet", "CronJob")
Key = tuple[str, str]
"""Kind, and namespace/name; for a node, kind and name."""


def missing_objects(scenario: Scenario) -> Iterator[Problem]:
    """Yield the field and the problem of each event on an object that cannot exist."""
    spec = scenario.spec
    named = [(index, event, *one) for index, event in enumerate(spec.events) for one in _named(event)]
    if not named:
        return
    since = {_key_of(obj): 0.0 for obj in scenario.objects}
    since |= {_key("Node", one["metadata"]["name"]): 0.0 for group in spec.nodes for one in description.expand(group)}
    applied = [(seconds(event.at), obj) for event in spec.events for obj in event.apply or ()]
    applied += [(change.time, change.object) for change in scenario.changes]
    for time, obj in applied:
        since[_key_of(obj)] = min(since.get(_key_of(obj), time), time)
    numbered = {_key("Node", group.name) for group in spec.nodeGroups}
    for arrival in spec.arrivals:
        if arrival.object is not None:
            kind, rows = str(arrival.object["kind"]), scenario.traces.get(arrival.name, ())
            numbered.add(_key(kind, arrival.name, arrival.namespace))
            since |= {_key(kind, row["name"], arrival.namespace): 0.0 for row in rows if row.get("name")}
    for index, event, field, (kind, name) in named:
        time = seconds(event.at)
        if since.get((kind, name), time + 1) > time and (kind, re.sub(r"-\d+$", "", name)) not in numbered:
            yield f"spec.events[{index}].{field}", f"there is no {kind} {name} at {format_duration(time)}"


def _key(kind: str, name: str, namespace: str = "default") -> Key:
    return kind, name if kind == "Node" else f"{namespace}/{name}"


def _key_of(obj: Object) -> Key:
    metadata = obj.get("metadata") or {}
    return _key(str(obj.get("kind")), str(metadata.get("name")), metadata.get("namespace") or "default")


def _named(event: Event) -> Iterator[tuple[str, Key]]:
    """Yield field and key of each object of a user-created kind that an event names."""
    for action in NODE_ACTIONS:
        nodes = getattr(event, action)
        for index, name in enumerate(nodes.names or () if nodes is not None else ()):
            yield f"{action}.names[{index}]", _key("Node", name)
    for field, target in (("scale", event.scale), ("delete", event.delete)):
        if target is not None and target.kind in _USER_CREATED:
            yield f"{field}.name", _key(target.kind, target.name, target.namespace)
