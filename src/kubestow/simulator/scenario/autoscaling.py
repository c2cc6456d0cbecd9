"""Node groups: nodes are added for unschedulable pods, and removed when they are empty.

Each group is evaluated every ten seconds. The number of nodes is found by placing the pending pods, with the same
scheduler configuration, on empty nodes of the group, one node after the other as long as that helps; the nodes are
added after the group's delay. This ignores constraints on running pods (affinity to them, topology spread). A node that
had only pods of DaemonSets during the group's idle time is removed.
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
_MAX_NODES_PER_SCAN = 100


class Autoscaler:
    """The autoscaler of one group; a recurring action."""

    def __init__(self, group: NodeGroup, place: Place) -> None:
        self._group = group
        self._place = place
        self._number = 0
        self._ordered = 0
        self._empty_since: dict[str, float] = {}
        self._cached: tuple[frozenset[str], int] = (frozenset(), 0)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Autoscaler":
        other = copy.copy(self)
        vars(other).update(_empty_since=dict(self._empty_since))
        memo[id(self)] = other
        return other

    def start(self, simulation: Simulation) -> None:
        """Add the minimum number of nodes and start scaling; raises ObjectsError."""
        for _ in range(self._group.min):
            self._add(simulation)
        simulation.at(simulation.time + _SCAN_SECONDS, self)

    def __call__(self, simulation: Simulation) -> None:
        nodes = self._nodes(simulation)
        for _ in range(self._to_order(simulation, nodes)):
            self._ordered += 1
            simulation.at(simulation.time + seconds(self._group.delay), self._deliver)
        self._shrink(simulation, nodes)
        simulation.at(simulation.time + _SCAN_SECONDS, self)

    def is_busy(self, simulation: Simulation) -> bool:
        """Return whether nodes will be added or removed."""
        nodes = self._nodes(simulation)
        has_spare = len(nodes) > self._group.min and bool(self._empty(simulation, nodes))
        return self._ordered > 0 or has_spare or self._to_order(simulation, nodes) > 0

    def _to_order(self, simulation: Simulation, nodes: list[str]) -> int:
        """Return the number of nodes to order for pending pods."""
        pending = [pod for pod in simulation.core.intake.pending_pods() if _is_unschedulable(pod)]
        limit = self._group.max - len(nodes) - self._ordered
        if not pending or limit <= 0:
            return 0
        return max(min(self._needed(simulation.settings, pending) - self._ordered, limit), 0)

    def _nodes(self, simulation: Simulation) -> list[str]:
        nodes = simulation.core.cluster.nodes
        group_name = self._group.name
        return [
            name
            for name, row in nodes.row_of.items()
            if (node := nodes.nodes[row]) is not None and node.metadata.labels.get(GROUP_LABEL) == group_name
        ]

    def _deliver(self, simulation: Simulation) -> None:
        self._add(simulation)
        # Count it as ordered until the scheduler has received it; before, it is missing among the existing nodes.
        simulation.at(simulation.time + simulation.settings.latencies.watch + 1.0, self._on_delivered)

    def _on_delivered(self, _simulation: Simulation) -> None:
        self._ordered -= 1

    def _node(self, number: int) -> dict[str, Any]:
        group: Group = replace(self._group.template, count=1, name=f"{self._group.name}-{number}")
        (node,) = description.expand(group)
        zones = self._group.template.zones
        if zones:
            node["metadata"]["labels"]["topology.kubernetes.io/zone"] = zones[number % len(zones)]
        node["metadata"]["labels"][GROUP_LABEL] = self._group.name
        return {"apiVersion": "v1", "kind": "Node", **node}

    def _add(self, simulation: Simulation) -> None:
        with self._place.report_errors():
            simulation.add(self._node(self._number))
        self._number += 1

    def _needed(self, settings: Settings, pending: list[Pod]) -> int:
        """Return the number of empty nodes needed for the pending pods."""
        uids = frozenset(pod.metadata.uid for pod in pending)
        if self._cached[0] == uids:
            return self._cached[1]
        needed = 0
        with _scheduler(settings) as harness:
            for pod in pending:
                harness.cluster.add(replace(pod, status=replace(pod.status, nominatedNodeName="")))
            # Stop when a node takes no pod that did not fit on those before it.
            while len(harness.bindings) < len(pending) and needed < min(self._group.max, _MAX_NODES_PER_SCAN):
                before = len(harness.bindings)
                harness.cluster.add(convert(Node, self._node(needed)))
                harness.run_until_idle()
                if len(harness.bindings) == before:
                    break
                needed += 1
        self._cached = (uids, needed)
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
        return {name for name in names if not any(map(_prevents_removal, nodes.pods[nodes.row_of[name]].values()))}


def _scheduler(settings: Settings) -> SchedulerHarness:
    """Return a scheduler with the settings of the simulation and an empty cluster."""
    configuration, loaded = settings.configuration, PluginCollection(settings.plugin_sources).loaded
    named: set[str] = set()
    if isinstance(configuration, SchedulerConfiguration):
        named = {name for profile in configuration.profiles for name in enabled_names(profile.plugins)}
    plugins = [*settings.plugins, *(one.plugin for one in loaded if one.name in named)]
    return SchedulerHarness(configuration, plugins=plugins, features=settings.features, seed=settings.seed)


def _prevents_removal(info: Any) -> bool:
    return not any(owner.kind == "DaemonSet" for owner in info.pod.metadata.ownerReferences)


def _is_unschedulable(pod: Pod) -> bool:
    return any(one.type == "PodScheduled" and one.reason == "Unschedulable" for one in pod.status.conditions)
