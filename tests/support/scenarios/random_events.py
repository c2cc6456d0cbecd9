"""Random events of a scheduler and its cluster."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from kubestow.api.codec import convert
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.priority import pod_is_terminal
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.workloads import PodDisruptionBudget
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import Wait
from kubestow.simulator.in_memory.faults import PROBLEMS
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios import consistency

ZONES = ("a", "b", "c")
TAINT = "busy:NoSchedule"
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "spread"}},
        }
    ]
}
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "apart"}}}
            ]
        }
    }
}
VOLUME = {
    "metadata": {"name": "shared"},
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "nfs": {"server": "s", "path": "/"}},
}
SHARED = {
    "metadata": {"name": "shared", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
    "spec": {"accessModes": ["ReadWriteMany"], "volumeName": "shared", "resources": {"requests": {"storage": "1Gi"}}},
    "status": {"phase": "Bound"},
}
BUDGET = {
    "metadata": {"name": "careful", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "spread"}}},
    "status": {"disruptionsAllowed": 0},
}
KINDS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"labels": {"app": "spread"}, "spec": SPREAD},
    {"labels": {"app": "apart"}, "spec": APART},
    {"host_ports": [80]},
    {"node_selector": {"disk": "ssd"}},
    {"labels": {"pair": "yes"}},
    {"labels": {"slow": "yes"}},
    {"labels": {"slow": "yes", "pair": "yes"}},
    {"tolerations": ["busy"]},
    {"claims": ["shared"]},
    {"gates": ["later"]},
    {"scheduler": "somebody-else"},
)


class Pairs:
    """Permits pods with the label only in pairs, unless it is switched off."""

    name = "Pairs"
    insists = True

    def __init__(self, args: Any, handle: Handle) -> None:
        self._handle = handle
        Pairs.insists = True

    def requeue_on(self) -> list[Registration]:
        return [on(Resource.ASSIGNED_POD, Action.ADD | Action.DELETE, self._is_about_another)]

    def _is_about_another(self, waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
        # A pod that loses its nomination causes the event of a pod that leaves its node, also for itself.
        return any(pod is not None and pod.metadata.uid != waiting.metadata.uid for pod in (old, new))

    def permit(self, state: Any, pod: PodInfo, node: str) -> Wait | None:
        if "pair" not in pod.labels or not self.insists:
            return None
        for other in self._handle.waiting_pods:
            other.allow(self.name)
            return None
        return Wait(3.0)


class Prepares:
    """Delays the binding of pods with the label, and sometimes fails."""

    name = "Prepares"

    def __init__(self, args: Any, handle: Handle) -> None:
        self._rng = handle.rng

    def pre_bind_needed(self, state: Any, pod: PodInfo, node: str) -> bool:
        return "slow" in pod.labels

    async def pre_bind(self, state: Any, pod: PodInfo, node: str) -> None:
        await asyncio.sleep((0.02, 0.2, 2.0)[self._rng.randrange(3)])
        if self._rng.randrange(10) == 0:
            raise RuntimeError("not prepared")


class Chaos:
    """Causes one random event after the other."""

    def __init__(self, rng: random.Random, **options: Any) -> None:
        self.rng = rng
        self.harness = SchedulerHarness(plugins=[Pairs, Prepares], delay=0.05, latency=0.05, **options)
        self.harness.cluster.add(convert(PersistentVolume, VOLUME))
        for _ in range(5):
            self.add_node()

    def step(self) -> None:
        action: Callable[[], None] = self.rng.choices(_ACTIONS, _WEIGHTS)[0].__get__(self)
        action()

    def _some(self, kind: type[Any], wanted: Callable[[Any], bool] = lambda _: True) -> Any:
        found = [obj for obj in self.harness.cluster.all(kind) if wanted(obj)]
        return self.rng.choice(found) if found else None

    def calm_down(self) -> None:
        """Stop everything that makes pods be retried forever."""
        self.harness.cluster.faults.clear()
        # Two pods of which only one fits take turns: when the wait of one ends, that of the other begins.
        Pairs.insists = False
        while not self.harness.cluster.all(Node):
            # A cluster without nodes is an error, and errors are retried.
            self.add_node()

    # Pods

    def add_pod(self) -> None:
        # Names are reused, as by stateful sets.
        name = f"p{self.rng.randrange(40)}"
        if self.harness.cluster.get(Pod, f"default/{name}") is None:
            self.harness.cluster.add(
                make_pod(
                    name,
                    cpu=self.rng.choice(["100m", "500m", "1", "2", "9"]),
                    priority=self.rng.choice([0, 0, 0, 5, 10]),
                    grace_seconds=self.rng.choice([0, 1, 5]),
                    **self.rng.choice(KINDS),
                )
            )

    def delete_pod(self) -> None:
        pod = self._some(Pod)
        if pod is not None:
            self.harness.cluster.delete(pod, self.rng.choice([None, 0.0, 2.0]))

    def relabel_pod(self) -> None:
        pod = self._some(Pod)
        if pod is not None:
            labels = {"app": self.rng.choice(["spread", "apart", "none"])}
            self.harness.cluster.update(replace(pod, metadata=replace(pod.metadata, labels=labels)))

    def open_gate(self) -> None:
        pod = self._some(Pod, lambda pod: pod.spec.schedulingGates)
        if pod is not None:
            self.harness.cluster.update(replace(pod, spec=replace(pod.spec, schedulingGates=())))

    def bind_elsewhere(self) -> None:
        pod, node = self._some(Pod, lambda pod: not pod.spec.nodeName), self._some(Node)
        if pod is not None and node is not None:
            bound = replace(pod.spec, nodeName=node.metadata.name, schedulingGates=())
            self.harness.cluster.update(replace(pod, spec=bound))

    def finish_pod(self) -> None:
        pod = self._some(Pod, lambda pod: pod.status.phase == "Pending")
        if pod is not None:
            self.harness.cluster.update(replace(pod, status=replace(pod.status, phase="Succeeded")))

    def change_claim(self) -> None:
        claim = self.harness.cluster.get(PersistentVolumeClaim, "default/shared")
        if claim is None:
            self.harness.cluster.add(convert(PersistentVolumeClaim, SHARED))
        else:
            self.harness.cluster.delete(claim)

    def protect(self) -> None:
        """Add or remove a disruption budget."""
        budget = self._some(PodDisruptionBudget)
        if budget is None:
            self.harness.cluster.add(convert(PodDisruptionBudget, BUDGET))
        else:
            self.harness.cluster.delete(budget)

    # Nodes

    def add_node(self) -> None:
        if len(self.harness.cluster.all(Node)) > 8:
            self.delete_node()
            return
        name = f"n{self.rng.randrange(12)}"
        if self.harness.cluster.get(Node, name) is None:
            self.harness.cluster.add(self._node(name))

    def _node(self, name: str) -> Node:
        return make_node(
            name,
            cpu=self.rng.choice(["1", "2", "4"]),
            pods=self.rng.choice([3, 10]),
            zone=self.rng.choice(ZONES),
            labels={"disk": self.rng.choice(["ssd", "hdd"])},
            taints=[TAINT] if self.rng.random() < 0.2 else [],
            images={"app": 1000} if self.rng.random() < 0.5 else {},
            unschedulable=self.rng.random() < 0.1,
        )

    def change_node(self) -> None:
        node = self._some(Node)
        if node is not None:
            self.harness.cluster.update(self._node(node.metadata.name))

    def delete_node(self) -> None:
        node = self._some(Node)
        if node is not None:
            self.harness.cluster.delete(node)

    # The world

    def break_calls(self) -> None:
        call = self.rng.choice(["bind", "patch_pod_status", "delete_pod", "*"])
        problem, effect = self.rng.choice(PROBLEMS), self.rng.random() < 0.3
        self.harness.cluster.faults.fail(call, problem, times=self.rng.randrange(1, 4), takes_effect=effect)

    def lose_server(self) -> None:
        self.harness.cluster.go_away_for(self.rng.choice([0.5, 5.0, 30.0]))

    def pass_time(self) -> None:
        self.harness.run_for(self.rng.choice([0.01, 0.03, 0.05, 0.2, 1.0, 3.0]))


_CHANCES = {
    Chaos.add_pod: 30,
    Chaos.delete_pod: 12,
    Chaos.relabel_pod: 5,
    Chaos.open_gate: 3,
    Chaos.bind_elsewhere: 2,
    Chaos.finish_pod: 3,
    Chaos.change_claim: 1,
    Chaos.protect: 1,
    Chaos.add_node: 4,
    Chaos.change_node: 6,
    Chaos.delete_node: 2,
    Chaos.break_calls: 3,
    Chaos.lose_server: 0.2,
    Chaos.pass_time: 30,
}
_ACTIONS, _WEIGHTS = list(_CHANCES), list(_CHANCES.values())


def run_events(rng: random.Random, events: int, check_every: int) -> Chaos:
    chaos = Chaos(rng)
    try:
        for number in range(events):
            chaos.step()
            if number % check_every == 0:
                consistency.check(chaos.harness)
        settle(chaos)
    finally:
        chaos.harness.close()
    return chaos


def settle(chaos: Chaos) -> None:
    """Let all operations end; afterwards, remaining pods wait for a reason, and bound pods are counted."""
    chaos.calm_down()
    chaos.harness.run_until_idle()
    consistency.check_settled(chaos.harness)
    for pod in chaos.harness.cluster.all(Pod):
        if pod.metadata.deletionTimestamp is None and not pod.spec.nodeName and not pod_is_terminal(pod):
            place = chaos.harness.place_of(pod.metadata.name)
            ours = pod.spec.schedulerName == "default-scheduler"
            assert place in (("unschedulable", "gated") if ours else ("",)), f"{pod.key} is in {place!r}"
