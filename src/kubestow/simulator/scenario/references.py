"""Events about objects that cannot be there when they happen, which are told before the run.

There may be what is there from the start, what an event or a file of another tool applies by then, and what arrivals
and node groups make. Controllers give names that nobody knows before, so only kinds that people make are looked at;
what was deleted in the meantime is noticed when the event happens.
"""

import re
from collections.abc import Iterator

from kubestow.apiserver.kubelets import description
from kubestow.simulator.results import span
from kubestow.simulator.scenario.format import Event, Object, seconds
from kubestow.simulator.scenario.reading import Scenario
from kubestow.simulator.scenario.rules import NODE_ACTIONS, Problem

_MADE_BY_PEOPLE = ("Node", "Deployment", "StatefulSet", "DaemonSet", "CronJob")
Key = tuple[str, str]
"""Kind, and namespace/name or, of a node, its name."""


def missing(scenario: Scenario) -> Iterator[Problem]:
    """Where in the Scenario, and what is not there."""
    spec = scenario.spec
    since = {_key(obj): 0.0 for obj in scenario.objects}
    since |= {("Node", one["metadata"]["name"]): 0.0 for group in spec.nodes for one in description.expand(group)}
    applied = [(seconds(event.at), obj) for event in spec.events for obj in event.apply or ()]
    applied += [(change.time, change.object) for change in scenario.changes]
    for time, obj in applied:
        since[_key(obj)] = min(since.get(_key(obj), time), time)
    numbered = {("Node", group.name) for group in spec.nodeGroups}
    for arrival in spec.arrivals:
        if arrival.object is not None:
            kind, rows = str(arrival.object["kind"]), scenario.traces.get(arrival.name, ())
            numbered.add((kind, f"{arrival.namespace}/{arrival.name}"))
            since |= {(kind, f"{arrival.namespace}/{row['name']}"): 0.0 for row in rows if row.get("name")}
    for index, event in enumerate(spec.events):
        time = seconds(event.at)
        for field, (kind, name) in _named(event):
            if kind not in _MADE_BY_PEOPLE or since.get((kind, name), time + 1) <= time:
                continue
            if (kind, re.sub(r"-\d+$", "", name)) not in numbered:
                yield f"spec.events[{index}].{field}", f"there is no {kind} {name} at {span(time)}"


def _key(obj: Object) -> Key:
    kind, metadata = str(obj.get("kind")), obj.get("metadata") or {}
    name = str(metadata.get("name"))
    return kind, name if kind == "Node" else f"{metadata.get('namespace') or 'default'}/{name}"


def _named(event: Event) -> Iterator[tuple[str, Key]]:
    """What an event is about, by field."""
    for action in NODE_ACTIONS:
        nodes = getattr(event, action)
        for index, name in enumerate(nodes.names or () if nodes is not None else ()):
            yield f"{action}.names[{index}]", ("Node", name)
    for field, target in (("scale", event.scale), ("delete", event.delete)):
        if target is not None:
            yield (
                f"{field}.name",
                (target.kind, target.name if target.kind == "Node" else f"{target.namespace}/{target.name}"),
            )
