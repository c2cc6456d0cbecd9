"""Random small clusters, and pods that use the features of every plugin, for hypothesis."""

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.workloads import Service
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.simulator.in_memory.harness import configured
from kubestow.testing.builders import make_node, make_pod

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = {"matchLabels": {"app": "web"}}
NODES = tuple(f"n{number}" for number in range(8))
MEGABYTE = 1024 * 1024


def _spread(key: str, action: str, skew: int = 1) -> dict[str, Any]:
    constraint = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": WEB}
    return {"spec": {"topologySpreadConstraints": [constraint]}, "labels": {"app": "web"}}


def _affinity(kind: str, key: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": WEB}
    return {"spec": {"affinity": {kind: {REQUIRED: [term]}}}, "labels": {"app": "web"}}


def _preferring(kind: str, key: str) -> dict[str, Any]:
    term = {"weight": 30, "podAffinityTerm": {"topologyKey": key, "labelSelector": WEB}}
    return {"spec": {"affinity": {kind: {PREFERRED: [term]}}}, "labels": {"app": "web"}}


def _on_disk(kind: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    terms = {"nodeSelectorTerms": [term]} if kind == REQUIRED else [{"weight": 9, "preference": term}]
    return {"spec": {"affinity": {"nodeAffinity": {kind: terms}}}}


def _named(*names: str) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}
    return {"spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}}


def _image(*names: str) -> dict[str, Any]:
    requests = {"resources": {"requests": {"cpu": "250m", "memory": "256Mi"}}}
    first, *others = [{"name": name, "image": name} for name in names]
    return {"spec": {"containers": [first | requests, *others]}}


_DISK = {"name": "disk", "gcePersistentDisk": {"pdName": "shared"}}

_SPECIAL: dict[str, dict[str, Any]] = {
    "plain": {},
    "large": {"cpu": "1", "memory": "1Gi"},
    "without requests": {"cpu": None, "memory": None},
    "gpu": {"resources": {"x.io/gpu": 1}},
    "no such resource": {"resources": {"x.io/unheard-of": 1}},
    "port": {"host_ports": [80]},
    "selector": {"node_selector": {"disk": "ssd"}},
    "node affinity": _on_disk(REQUIRED),
    "preferred node affinity": _on_disk(PREFERRED),
    "named nodes": _named("n0", "n1"),
    "toleration": {"tolerations": ["dedicated", "slow"]},
    "big image": _image("big"),
    "small images": _image("small", "big", "unknown"),
    "zone spread": _spread(ZONE, "DoNotSchedule"),
    "soft zone spread": _spread(ZONE, "ScheduleAnyway"),
    "soft host spread": _spread(HOSTNAME, "ScheduleAnyway", 2),
    "zone affinity": _affinity("podAffinity", ZONE),
    "host anti-affinity": _affinity("podAntiAffinity", HOSTNAME),
    "preferred zone affinity": _preferring("podAffinity", ZONE),
    "preferred host anti-affinity": _preferring("podAntiAffinity", HOSTNAME),
    "disk": {"spec": {"volumes": [_DISK]}},
}
POD_KINDS = {kind: {"cpu": "250m", "memory": "256Mi"} | special for kind, special in _SPECIAL.items()}
"""Arguments of `make_pod` by the kind of pod."""

PROFILES = {
    "default": "",
    "most allocated": """
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 2}, {name: x.io/gpu, weight: 1}]
  - name: NodeResourcesBalancedAllocation
    args:
      resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}, {name: x.io/gpu, weight: 1}]
""",
    "by shape, ignoring gpus": """
  pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResources: [x.io/gpu]
      scoringStrategy:
        type: RequestedToCapacityRatio
        requestedToCapacityRatio:
          shape: [{utilization: 0, score: 10}, {utilization: 70, score: 3}, {utilization: 100, score: 7}]
""",
    "pods before nodes": """
  plugins:
    filter:
      enabled: [{name: InterPodAffinity}, {name: PodTopologySpread}]
""",
    "legacy plugins": f"""
  plugins:
    multiPoint:
      enabled:
      - name: NodeLabel
      - name: NodePreferAvoidPods
      - name: NodeResourcesLeastAllocated
      - name: NodeResourcesMostAllocated
        weight: 3
      - name: RequestedToCapacityRatio
      - name: ServiceAffinity
        weight: 2
  pluginConfig:
  - name: NodeLabel
    args: {{absentLabels: [retired], presentLabelsPreference: [{ZONE}], absentLabelsPreference: [x]}}
  - name: RequestedToCapacityRatio
    args:
      shape: [{{utilization: 0, score: 10}}, {{utilization: 100, score: 2}}]
      resources: [{{name: cpu}}, {{name: x.io/gpu, weight: 3}}]
  - name: ServiceAffinity
    args: {{affinityLabels: [disk], antiAffinityLabelsPreference: [{ZONE}, disk]}}
""",
}
PROFILES["checking all predicates"] = PROFILES["legacy plugins"] + "  alwaysCheckAllPredicates: true\n"
"""Profiles whose plugins have other arguments."""


def configuration_of(profile: str) -> config.SchedulerConfiguration:
    """Return the configuration with one of PROFILES."""
    if not PROFILES[profile]:
        return config.default()
    return config.load(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n-"
        + PROFILES[profile][2:]
    )


def profile_on(
    cluster: Cluster,
    nominator: Nominator,
    profile: str = "default",
    seed: int = 0,
    *,
    plugins: Sequence[Any] = (),
    **parts: Any,
) -> Profile:
    """Return a profile with all plugins, and some out-of-tree ones; `parts` replaces attributes of the handle."""
    handle = offline_handle(cluster, nominator=nominator, rng=random.Random(seed), **parts)
    registry = in_tree_registry()
    for plugin in plugins:
        registry.register(plugin.name, plugin)
    configuration = configured(configuration_of(profile), plugins, config.Features())
    made = build_profiles(configuration, registry, handle, lambda: 0.0)
    return made["default-scheduler"]


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """Draw a node with this name."""
    choose = st.sampled_from
    resources = {"x.io/gpu": draw(choose([1, 2]))} if draw(st.booleans()) else {}
    return make_node(
        name,
        cpu=draw(choose(["1", "2", "4", "4", "0"])),
        memory=draw(choose(["2Gi", "4Gi", "7Gi"])),
        pods=draw(choose([2, 4, 110])),
        resources=resources,
        zone=draw(choose(["a", "b", None])),
        labels=draw(choose([{"disk": "ssd"}, {"disk": "hdd"}, {"disk": "hdd", "retired": ""}])),
        taints=draw(choose([[], [], ["dedicated:NoSchedule"], ["slow:PreferNoSchedule"]])),
        images=draw(choose([{}, {"big:latest": 900 * MEGABYTE}, {"small:latest": 40 * MEGABYTE}])),
        unschedulable=draw(choose([False] * 5 + [True])),
    )


kinds = st.sampled_from(sorted(POD_KINDS))


def pod_of(kind: str, name: str, *, node: str = "", priority: int = 0, nominated: str = "", cpu: int = 0) -> Pod:
    """Return a pod of one of POD_KINDS; with another number of thousandths of a CPU, unless that is 0."""
    status = {"nominatedNodeName": nominated} if nominated else {}
    shape = POD_KINDS[kind] | ({"cpu": f"{cpu}m"} if cpu else {})
    return make_pod(name, node=node, priority=priority, status=status, **shape)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Draw a cluster of a few nodes, some of them removed again, with pods on them."""
    cluster = Cluster()
    names = NODES[: draw(st.integers(1, len(NODES)))]
    for name in names:
        cluster.set_node(draw(nodes(name)))
    for number in range(draw(st.integers(0, 10))):
        cluster.set_pod(pod_of(draw(kinds), f"running-{number}", node=draw(st.sampled_from(names))))
    if draw(st.booleans()):
        service = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
        cluster.set_object(convert(Service, service))
    if len(names) > 2 and draw(st.booleans()):
        cluster.remove_node(draw(st.sampled_from(names)))
    return cluster
