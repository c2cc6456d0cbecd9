"""A small cluster in which pods preempt others."""

import random
from typing import Any

import msgspec

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.api.timestamps import format_time
from kubestow.api.workloads import PodDisruptionBudget
from kubestow.config.features import Features
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.post_filter import run_post_filter
from kubestow.scheduler.extenders.extender import run_until_calls
from kubestow.scheduler.framework.detached import FixedClock
from kubestow.scheduler.framework.results import PostFilterResult
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.testing.builders import make_node, make_pod
from support.settled import settled

NOW = 1_000_000.0


class World:
    """Nodes with 4 CPUs, with pods on them, and the default profile."""

    def __init__(self, *nodes: str, seed: int = 0, configuration: str = "", **features: Any) -> None:
        self.cluster = Cluster()
        self.nominator = Nominator()
        self.preempting: set[str] = set()
        for name in nodes:
            self.cluster.set_node(make_node(name))
        self.handle = handle = offline_handle(
            self.cluster,
            Features(**features),
            nominator=self.nominator,
            clock=FixedClock(NOW),
            rng=random.Random(seed),
            is_preempting=self.preempting.__contains__,
        )
        loaded = config.load(configuration) if configuration else config.default()
        profiles = build_profiles(loaded, in_tree_registry(), handle, lambda: 0.0)
        self.profile = profiles["default-scheduler"]

    def run(self, name: str, node: str, *, started: float | None = 1_000.0, **pod: Any) -> Pod:
        """Run a new pod on a node."""
        status = {"phase": "Running", **pod.pop("status", {})}
        if started is not None:
            status["startTime"] = format_time(started)
        made = make_pod(name, node=node, status=status, **pod)
        self.cluster.set_pod(made)
        return made

    def run_as(self, pod: Pod, node: str) -> None:
        """Run this pod on a node."""
        spec = msgspec.structs.replace(pod.spec, nodeName=node)
        self.cluster.set_pod(msgspec.structs.replace(pod, spec=spec))

    def budget(self, name: str, allowed: int, *, namespace: str = "default", **fields: Any) -> None:
        """Protect pods by a disruption budget; `selector` defaults to app=web."""
        selector = fields.get("selector", {"matchLabels": {"app": "web"}})
        manifest = {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": selector},
            "status": {"disruptionsAllowed": allowed, "disruptedPods": fields.get("disrupted", {})},
        }
        self.cluster.set_object(convert(PodDisruptionBudget, manifest))

    def evaluate(self, pod: Pod) -> Evaluation:
        """Evaluate a pod that fits on no node."""
        evaluation = Evaluation(self.profile, self.cluster, self.nominator, PodInfo(pod))
        if evaluation.pre_filter():
            assert not len(evaluation.filter()), "the pod fits without preempting"
        return evaluation

    def preempt(self, pod: Pod) -> PostFilterResult:
        """Return the result of preemption for a pod."""
        return settled(run_until_calls(run_post_filter(self.profile, self.evaluate(pod), None)))

    def victims(self, pod: Pod) -> list[str]:
        """Return the victims of preemption for a pod, most important first."""
        return [victim.name for victim in self.preempt(pod).victims]
