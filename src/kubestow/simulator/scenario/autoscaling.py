"""Groups of nodes that grow when pods wait for room and shrink when nodes are empty.

Every ten seconds the group is looked at. How many nodes the waiting pods need is found by placing them, with the same
scheduler configuration, on empty nodes of the group, one node after the other as long as that helps; the nodes come
after the group's delay. What depends on pods that run already (affinity to them, spreading) is not seen by that. A node
that has held nothing but pods of DaemonSets for the group's idle time is removed.
"""

import copy
from typing import Any

from msgspec.structs import replace

from kubestow.api.codec import convert
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.apiserver.kubelets import description
from kubestow.apiserver.kubelets.description import Group
from kubestow.config import SchedulerConfiguration
from kubestow.config.expansion import enabled_names
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator.in_memory.harness import SchedulerHarness
from kubestow.simulator.scenario.format import NodeGroup, seconds
from kubestow.simulator.scenario.places import Place
from kubestow.simulator.settings import Settings
from kubestow.simulator.simulation import Simulation

GROUP_LABEL = "kubestow.dev/node-group"
_SCAN_SECONDS = 10.0
_MOST_AT_ONCE = 100


class Autoscaler:
    """One group; an action that plans its next turn."""

    def __init__(self, group: NodeGroup, place: Place) -> None:
        self._group = group
        self._place = place
        self._number = 0
        self._coming = 0
        self._empty_since: dict[str, float] = {}
        self._answered: tuple[frozenset[str], int] = (frozenset(), 0)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Autoscaler":
        other = copy.copy(self)
        vars(other).update(_empty_since=dict(self._empty_since))
        memo[id(self)] = other
        return other

    def start(self, simulation: Simulation) -> None:
        """Have the smallest number of nodes, and look after it from now on; raises ObjectsError."""
        for _ in range(self._group.min):
            self._add(simulation)
        simulation.at(simulation.time + _SCAN_SECONDS, self)

    def __call__(self, simulation: Simulation) -> None:
        nodes = self._nodes(simulation)
        for _ in range(self._missing(simulation, nodes)):
            self._coming += 1
            simulation.at(simulation.time + seconds(self._group.delay), self._arrive)
        self._shrink(simulation, nodes)
        simulation.at(simulation.time + _SCAN_SECONDS, self)

    def is_busy(self, simulation: Simulation) -> bool:
        """Whether nodes will come or go."""
        nodes = self._nodes(simulation)
        has_spare = len(nodes) > self._group.min and bool(self._empty(simulation, nodes))
        return self._coming > 0 or has_spare or self._missing(simulation, nodes) > 0

    def _missing(self, simulation: Simulation, nodes: list[str]) -> int:
        """How many nodes are to be ordered for pods that wait."""
        waiting = [pod for pod in simulation.core.intake.pending_pods() if _is_unschedulable(pod)]
        room = self._group.max - len(nodes) - self._coming
        if not waiting or room <= 0:
            return 0
        return max(min(self._needed(simulation.settings, waiting) - self._coming, room), 0)

    def _nodes(self, simulation: Simulation) -> list[str]:
        nodes = simulation.core.cluster.nodes
        mine = self._group.name
        return [
            name
            for name, row in nodes.row_of.items()
            if (node := nodes.nodes[row]) is not None and node.metadata.labels.get(GROUP_LABEL) == mine
        ]

    def _arrive(self, simulation: Simulation) -> None:
        self._add(simulation)
        # Until the scheduler has heard of it, it would be missing among the nodes there are.
        simulation.at(simulation.time + simulation.settings.latencies.watch + 1.0, self._arrived)

    def _arrived(self, _simulation: Simulation) -> None:
        self._coming -= 1

    def _node(self, number: int) -> dict[str, Any]:
        group: Group = replace(self._group.template, count=1, name=f"{self._group.name}-{number}")
        (node,) = description.expand(group)
        zones = self._group.template.zones
        if zones:
            node["metadata"]["labels"]["topology.kubernetes.io/zone"] = zones[number % len(zones)]
        node["metadata"]["labels"][GROUP_LABEL] = self._group.name
        return {"apiVersion": "v1", "kind": "Node", **node}

    def _add(self, simulation: Simulation) -> None:
        with self._place.blamed():
            simulation.add(self._node(self._number))
        self._number += 1

    def _needed(self, settings: Settings, waiting: list[Pod]) -> int:
        """How many empty nodes the waiting pods would fill."""
        uids = frozenset(pod.metadata.uid for pod in waiting)
        if self._answered[0] == uids:
            return self._answered[1]
        needed = 0
        with _scheduler(settings) as harness:
            for pod in waiting:
                harness.cluster.add(replace(pod, status=replace(pod.status, nominatedNodeName="")))
            # One by one: as long as each node finds pods that fit on none before it.
            while len(harness.bindings) < len(waiting) and needed < min(self._group.max, _MOST_AT_ONCE):
                before = len(harness.bindings)
                harness.cluster.add(convert(Node, self._node(needed)))
                harness.run_until_idle()
                if len(harness.bindings) == before:
                    break
                needed += 1
        self._answered = (uids, needed)
        return needed

    def _shrink(self, simulation: Simulation, names: list[str]) -> None:
        now, empty = simulation.time, self._empty(simulation, names)
        self._empty_since = {name: self._empty_since.get(name, now) for name in names if name in empty}
        spare = len(names) - self._group.min
        for name, since in list(self._empty_since.items()):
            if spare > 0 and now - since >= seconds(self._group.idle):
                spare -= 1
                del self._empty_since[name]
                simulation.delete("Node", name)

    def _empty(self, simulation: Simulation, names: list[str]) -> set[str]:
        nodes = simulation.core.cluster.nodes
        return {name for name in names if not any(map(_counts, nodes.pods[nodes.row_of[name]].values()))}


def _scheduler(settings: Settings) -> SchedulerHarness:
    """A scheduler like the one of the simulation, without a cluster."""
    configuration, loaded = settings.configuration, PluginCollection(settings.plugin_sources).loaded
    named: set[str] = set()
    if isinstance(configuration, SchedulerConfiguration):
        named = {name for profile in configuration.profiles for name in enabled_names(profile.plugins)}
    plugins = [*settings.plugins, *(one.plugin for one in loaded if one.name in named)]
    return SchedulerHarness(configuration, plugins=plugins, features=settings.features, seed=settings.seed)


def _counts(info: Any) -> bool:
    return not any(owner.kind == "DaemonSet" for owner in info.pod.metadata.ownerReferences)


def _is_unschedulable(pod: Pod) -> bool:
    return any(one.type == "PodScheduled" and one.reason == "Unschedulable" for one in pod.status.conditions)
