"""Changes around a pod: pods of lower priority gone, a claim freed, a volume elsewhere, one node more."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from kubestow.cluster.pods import PodInfo
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.post_filter import run_post_filter
from kubestow.explaining.changes import CLUSTER, Change
from kubestow.explaining.world import World
from kubestow.extenders.extender import carry_on
from kubestow.framework.results import PluginError, PostFilterResult
from kubestow.model.csi_translation import BETA_ZONE, ZONE
from kubestow.model.node import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.model.pod import Pod
from kubestow.model.storage import PersistentVolume, VolumeNodeAffinity
from kubestow.model.topology import HOSTNAME_LABEL

_MOST_SHAPES = 10
_MOST_CLAIMS = 100
_MOST_PLACES = 10
_NAMED = 5
_NEW = "new-node"


def victims_gone(world: World, pod: Pod, target: str) -> Iterator[Change]:
    """Who would have to go, from the target if there is one: whom preemption finds, if the profile has it."""
    profile = world.profile_of(pod)
    # A pod that names its node makes room there, and nowhere else.
    spec = replace(pod.spec, preemptionPolicy=None, nodeName=target or pod.spec.nodeName)
    status = replace(pod.status, nominatedNodeName="")
    preemptor = PodInfo(replace(pod, spec=spec, status=status))
    evaluation = Evaluation(profile, world.cluster, world.nominator, preemptor)
    try:
        if not profile.post_filter or not evaluation.pre_filter() or len(evaluation.filter()):
            return
        result = carry_on(run_post_filter(profile, evaluation, None))
    except (PluginError, ValueError):
        return
    assert isinstance(result, PostFilterResult)
    if result.victims:
        yield departure(result)


def departure(result: PostFilterResult) -> Change:
    """The victims of a preemption, gone."""
    names = ", ".join(victim.key for victim in result.victims[:_NAMED])
    more = f" and {len(result.victims) - _NAMED} more" if len(result.victims) > _NAMED else ""
    said = f"pods of lower priority gone from node {result.nominated_node}: {names}{more}"
    return Change(CLUSTER, said, 0.4 + 0.05 * min(len(result.victims), 10), gone=result.victims)


def claims_freed(world: World, pod: Pod) -> Iterator[Change]:
    """Claims of the pod, and devices that it may want, which others hold."""
    cluster = world.cluster
    for name in PodInfo(pod).claim_names:
        key = f"{pod.metadata.namespace}/{name}"
        users = [cluster.pod(uid) for uid in sorted(cluster.claim_users.get(key, ()))]
        gone = tuple(user for user in users if user is not None)
        if gone:
            said = f"claim {key} freed by {', '.join(user.key for user in gone)}"
            yield Change(CLUSTER, said, 0.6, gone=gone)
    if not pod.spec.resourceClaims and not any("/" in name for name in PodInfo(pod).requests.amounts):
        return
    taken = [claim for claim in cluster.listers.resource_claims if claim.status.allocation is not None]
    for claim in taken[:_MOST_CLAIMS]:
        freed = replace(claim, status=replace(claim.status, allocation=None, reservedFor=()))
        said = f"resource claim {claim.metadata.namespace}/{claim.metadata.name} freed"
        yield Change(CLUSTER, said, 0.6, objects=(freed,))


def volumes_elsewhere(world: World, pod: Pod, target: str) -> Iterator[Change]:
    """A volume of the pod in another zone, or on another host if it is local: where the target is, if there is one."""
    cluster = world.cluster
    listers, nodes = cluster.listers, [cluster.node(target)] if target else cluster.nodes.nodes
    for name in PodInfo(pod).claim_names:
        claim = listers.claims.get(f"{pod.metadata.namespace}/{name}")
        volume = listers.volumes.get(claim.spec.volumeName) if claim is not None and claim.spec.volumeName else None
        if volume is None:
            continue
        for key in _place_keys(volume):
            values = Counter(
                node.metadata.labels[key] for node in nodes if node is not None and key in node.metadata.labels
            )
            for value, _ in values.most_common(_MOST_PLACES):
                said = f"volume {volume.metadata.name} in {key}={value}"
                yield Change(CLUSTER, said, 0.8, objects=(_moved(volume, key, value),))


def _place_keys(volume: PersistentVolume) -> list[str]:
    """The labels that say where a volume is."""
    keys = [key for key in (ZONE, BETA_ZONE) if key in volume.metadata.labels]
    affinity = volume.spec.nodeAffinity
    terms = affinity.required.nodeSelectorTerms if affinity is not None and affinity.required is not None else ()
    keys += [one.key for term in terms for one in term.matchExpressions]
    return list(dict.fromkeys(keys))


def _moved(volume: PersistentVolume, key: str, value: str) -> PersistentVolume:
    labels = {name: value if name == key else kept for name, kept in volume.metadata.labels.items()}
    spec: Any = volume.spec
    if spec.nodeAffinity is not None and spec.nodeAffinity.required is not None:
        terms = tuple(
            NodeSelectorTerm(
                tuple(
                    NodeSelectorRequirement(key, "In", (value,)) if one.key == key else one
                    for one in term.matchExpressions
                ),
                term.matchFields,
            )
            for term in spec.nodeAffinity.required.nodeSelectorTerms
        )
        spec = replace(spec, nodeAffinity=VolumeNodeAffinity(NodeSelector(terms)))
    return replace(volume, metadata=replace(volume.metadata, labels=labels), spec=spec)


def nodes_added(world: World) -> Iterator[Change]:
    """One more node of each kind that there is, the most common kinds first."""
    kinds: dict[Any, list[Node]] = {}
    for node in world.cluster.nodes.nodes:
        if node is not None:
            others = frozenset(item for item in node.metadata.labels.items() if item[0] != HOSTNAME_LABEL)
            amounts = frozenset(node.status.allocatable.items())
            kinds.setdefault((others, amounts, node.spec.taints, node.spec.unschedulable), []).append(node)
    for alike in sorted(kinds.values(), key=len, reverse=True)[:_MOST_SHAPES]:
        example = alike[0]
        labels = {**example.metadata.labels, HOSTNAME_LABEL: _NEW}
        node = replace(example, metadata=replace(example.metadata, name=_NEW, uid=_NEW, labels=labels))
        yield Change(CLUSTER, f"a node like {example.metadata.name} added", 0.9, nodes=(node,))
