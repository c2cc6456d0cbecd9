"""Changes of the cluster: pods of lower priority removed, a claim freed, a volume moved, a node added."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from kubestow.api.csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE
from kubestow.api.devices import ResourceClaim
from kubestow.api.node import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, VolumeNodeAffinity
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.insight.explain.changes import CLUSTER, Change, FeasibleAfter, changed, feasible_nodes, until_time_limit
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.post_filter import run_post_filter
from kubestow.scheduler.extenders.extender import run_until_calls
from kubestow.scheduler.framework.results import PluginError, PostFilterResult

T = TypeVar("T")

_MOST_PLACES = 10
_NAMED = 5
_NEW = "new-node"
_NEWER = {BETA_ZONE: ZONE, BETA_REGION: REGION}


def victims_removed(world: World, pod: Pod, target: str) -> Iterator[Change]:
    """Remove the victims that preemption finds, if the profile has it; only from the `target` node if it is set."""
    profile = world.profile_of(pod)
    # A pod that names its node only preempts there.
    spec = replace(pod.spec, preemptionPolicy=None, nodeName=target or pod.spec.nodeName)
    status = replace(pod.status, nominatedNodeName="")
    preemptor = PodInfo(replace(pod, spec=spec, status=status))
    evaluation = Evaluation(profile, world.cluster, world.nominator, preemptor)
    try:
        if not profile.post_filter or not evaluation.pre_filter() or len(evaluation.filter()):
            return
        result = run_until_calls(run_post_filter(profile, evaluation, None))
    except (PluginError, ValueError):
        return
    assert isinstance(result, PostFilterResult)
    if result.victims:
        yield preempted(result)


def preempted(result: PostFilterResult) -> Change:
    """Remove the victims of a preemption."""
    assert result.nominated_node is not None
    return removal(result.victims, [result.nominated_node])


def removal(pods: Sequence[PodInfo], nodes: Sequence[str]) -> Change:
    """Remove pods of lower priority from nodes."""
    where = f"node{'s' if len(nodes) > 1 else ''} {_listed(nodes)}"
    text = f"pods of lower priority removed from {where}: {_listed([pod.key for pod in pods])}"
    return Change(CLUSTER, text, 0.4 + 0.05 * min(len(pods), 10), removed=tuple(pods))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def claims_freed(world: World, pod: Pod) -> Iterator[Change]:
    """Free each volume claim of the pod that other pods use."""
    cluster = world.cluster
    for name in PodInfo(pod).claim_names:
        key = f"{pod.metadata.namespace}/{name}"
        users = [cluster.pod(uid) for uid in sorted(cluster.claim_users.get(key, ()))]
        removed = tuple(user for user in users if user is not None)
        if removed:
            text = f"claim {key} freed by {', '.join(user.key for user in removed)}"
            yield Change(CLUSTER, text, 0.6, removed=removed)


def devices_freed(world: World, pod: Pod, feasible_after: FeasibleAfter) -> Iterator[Change]:
    """Free each resource claim whose devices would suffice for the pod."""
    if not pod.spec.resourceClaims and not any("/" in name for name in PodInfo(pod).requests.amounts):
        return
    taken = [claim for claim in world.cluster.listers.resource_claims if claim.status.allocation is not None]
    parts = [taken] if taken else []
    for part in until_time_limit(_popped(parts)):
        # If freeing several claims together does not help, none of them does.
        if not feasible_after(freed := _freed(part)):
            continue
        if len(part) == 1:
            yield freed
        else:
            half = len(part) // 2
            parts += [part[half:], part[:half]]


def _popped(stack: list[T]) -> Iterator[T]:
    while stack:
        yield stack.pop()


def _freed(claims: Sequence[ResourceClaim]) -> Change:
    freed = tuple(replace(one, status=replace(one.status, allocation=None, reservedFor=())) for one in claims)
    text = f"resource claim {_listed([f'{one.metadata.namespace}/{one.metadata.name}' for one in claims])} freed"
    return Change(CLUSTER, text, 0.6, objects=freed)


def volumes_moved(world: World, pod: Pod, feasible_after: FeasibleAfter) -> Iterator[Change]:
    """Move each volume of the pod to zones (local volumes: hosts) of nodes that are feasible without its place."""
    listers = world.cluster.listers
    for name in PodInfo(pod).claim_names:
        claim = listers.claims.get(f"{pod.metadata.namespace}/{name}")
        volume = listers.volumes.get(claim.spec.volumeName) if claim is not None and claim.spec.volumeName else None
        if volume is None:
            continue
        for key in _place_keys(volume):
            anywhere = Change(CLUSTER, "", 1.0, objects=(_moved(volume, key, ""),))
            nodes = [node for name in feasible_after(anywhere) if (node := world.cluster.node(name)) is not None]
            # Newer nodes have the successor of a beta label only.
            labels = [node.metadata.labels.get(key) or node.metadata.labels.get(_NEWER.get(key, "")) for node in nodes]
            values = Counter(filter(None, labels))
            for value, _ in values.most_common(_MOST_PLACES):
                text = f"volume {volume.metadata.name} moved to {key}={value}"
                yield Change(CLUSTER, text, 0.8, objects=(_moved(volume, key, value),))


def _place_keys(volume: PersistentVolume) -> list[str]:
    """Return the label keys that define the place of a volume."""
    keys = [key for key in (ZONE, BETA_ZONE, REGION, BETA_REGION) if key in volume.metadata.labels]
    affinity = volume.spec.nodeAffinity
    terms = affinity.required.nodeSelectorTerms if affinity is not None and affinity.required is not None else ()
    keys += [one.key for term in terms for one in term.matchExpressions]
    return list(dict.fromkeys(keys))


def _moved(volume: PersistentVolume, key: str, value: str) -> PersistentVolume:
    """Return the volume at another place; with an empty value, without the restriction on this label."""
    labels = {name: value if name == key else kept for name, kept in volume.metadata.labels.items()}
    if not value:
        labels.pop(key, None)
    spec: Any = volume.spec
    if spec.nodeAffinity is not None and spec.nodeAffinity.required is not None:
        place = (NodeSelectorRequirement(key, "In", (value,)),) if value else ()
        terms = tuple(
            NodeSelectorTerm(
                tuple(kept for one in term.matchExpressions for kept in (place if one.key == key else (one,))),
                term.matchFields,
            )
            for term in spec.nodeAffinity.required.nodeSelectorTerms
        )
        # A term without conditions would match no node.
        affinity = None if NodeSelectorTerm() in terms else VolumeNodeAffinity(NodeSelector(terms))
        spec = replace(spec, nodeAffinity=affinity)
    return replace(volume, metadata=replace(volume.metadata, labels=labels), spec=spec)


def nodes_added(world: World, pods: Iterable[Pod]) -> Iterator[Change]:
    """Add a node of each existing kind that is feasible for any of the pods, the most common kinds first."""
    examples = [equal[0] for equal in world.of_nodes(node_kinds)]
    # Evaluate one node of each kind together first.
    several = tuple(node_like(example, f"{_NEW}-{number}") for number, example in enumerate(examples))
    with changed(world, Change(CLUSTER, "", 1.0, nodes=several)):
        feasible = {name for pod in pods for name in feasible_nodes(world, pod)}
    for example, new in zip(examples, several, strict=True):
        if new.metadata.name in feasible:
            text = f"a node like {example.metadata.name} added"
            yield Change(CLUSTER, text, 0.9, nodes=(node_like(example, _NEW),))


def node_kinds(world: World) -> list[list[Node]]:
    """Return the nodes that are equal except for their names, the most common kind first."""
    kinds: dict[Any, list[Node]] = {}
    for node in world.cluster.nodes.nodes:
        if node is not None:
            others = frozenset(item for item in node.metadata.labels.items() if item[0] != HOSTNAME_LABEL)
            amounts = frozenset(node.status.allocatable.items())
            kinds.setdefault((others, amounts, node.spec.taints, node.spec.unschedulable), []).append(node)
    return sorted(kinds.values(), key=len, reverse=True)


def node_like(node: Node, name: str) -> Node:
    """Return a copy of a node with another name."""
    labels = {**node.metadata.labels, HOSTNAME_LABEL: name}
    return replace(node, metadata=replace(node.metadata, name=name, uid=name, labels=labels))
