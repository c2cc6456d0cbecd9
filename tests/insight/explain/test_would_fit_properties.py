"""Random worlds: the pod fits after every suggestion, and if a single change helps, one is suggested.

For tolerations, labels, removed pods and added nodes, one is suggested whenever a change of that kind helps.
"""

from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.node import Node, Taint
from kubestow.api.pod import Affinity, Pod, Toleration
from kubestow.insight.explain.changes import CLUSTER, NODE, POD, Change, combine_changes, feasible_after, feasible_nodes
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.together import enough_together
from kubestow.insight.explain.world import Setup, World
from kubestow.insight.explain.would_fit import Found, Search
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.testing import make_node, make_pod

SETUP = Setup(config.default())
KEYS, VALUES = ("disk", "arch"), ("x", "z")
TAINTS = ("dedicated=batch:NoSchedule", "dedicated=web:NoExecute", "broken:NoSchedule")
SELECTOR = {"matchLabels": {"app": "web"}}
ZONE = "topology.kubernetes.io/zone"
AWAY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ZONE, "labelSelector": SELECTOR}]
    }
}
FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)

labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
conditions = st.fixed_dictionaries(
    {
        "key": st.sampled_from(KEYS),
        "operator": st.sampled_from(("In", "In", "NotIn", "Exists", "DoesNotExist")),
        "values": st.lists(st.sampled_from(VALUES), min_size=1, unique=True),
    }
)
terms = st.lists(st.lists(conditions, min_size=1, max_size=2), min_size=1, max_size=2)
cpus = st.integers(1, 6)


@st.composite
def worlds(draw: st.DrawFn) -> list[Any]:
    """Generate a few nodes with pods."""
    nodes = [
        make_node(
            f"n{number}",
            cpu=draw(cpus),
            pods=draw(st.sampled_from((1, 2, 110))),
            zone=draw(st.sampled_from((None, "a", "b"))),
            labels=draw(labels),
            taints=draw(st.lists(st.sampled_from(TAINTS), max_size=2, unique=True)),
            unschedulable=draw(st.booleans()) and draw(st.booleans()),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    pods = [
        make_pod(
            f"p{number}",
            cpu=draw(st.integers(0, 3)),
            node=draw(st.sampled_from(nodes)).metadata.name,
            priority=draw(st.sampled_from((0, 100))),
            labels=draw(st.sampled_from(({}, {"app": "web"}))),
            host_ports=draw(st.sampled_from(((), (80,)))),
            spec={"affinity": AWAY} if draw(st.integers(0, 5)) == 0 else {},
        )
        for number in range(draw(st.integers(0, 5)))
    ]
    return [*nodes, *pods]


@st.composite
def pods_to_place(draw: st.DrawFn) -> Pod:
    """Generate a pod with several kinds of constraints."""
    spec: dict[str, Any] = {}
    if draw(st.booleans()):
        key = draw(st.sampled_from((ZONE, "kubernetes.io/hostname")))
        constraint = {"maxSkew": draw(st.integers(1, 2)), "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
        policy = {"nodeTaintsPolicy": draw(st.sampled_from(("Ignore", "Honor")))}
        spec["topologySpreadConstraints"] = [{**constraint, **policy, "labelSelector": SELECTOR}]
    affinity: dict[str, Any] = {}
    kind = draw(st.sampled_from((None, "podAffinity", "podAntiAffinity")))
    if kind:
        term = {"topologyKey": ZONE, "labelSelector": SELECTOR}
        affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    if draw(st.booleans()):
        required = {"nodeSelectorTerms": [{"matchExpressions": several} for several in draw(terms)]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return make_pod(
        "new",
        cpu=draw(cpus),
        priority=draw(st.sampled_from((0, 50))),
        labels={"app": "web"},
        node_selector=draw(labels) if draw(st.booleans()) else {},
        host_ports=draw(st.sampled_from(((), (80,)))),
        gates=draw(st.sampled_from(((), (), ("hold",)))),
        spec={**spec, "affinity": affinity} if affinity else spec,
    )


@st.composite
def choosy_pods(draw: st.DrawFn) -> Pod:
    """Generate a pod that only has a node affinity with several terms."""
    condition = st.builds(
        lambda key, operator, value: {"key": key, "operator": operator, "values": [value]},
        *(st.sampled_from(KEYS), st.sampled_from(("In", "NotIn")), st.sampled_from(VALUES)),
    )
    terms: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
        st.builds(dict, matchExpressions=st.lists(condition, min_size=1, max_size=2)), min_size=1, max_size=3
    )
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": draw(terms)}}
    return make_pod("new", spec={"affinity": {"nodeAffinity": required}})


def after(objects: list[Any], change: Change) -> World:
    """Return a new world that is created with the change."""
    removed = {pod.uid for pod in change.removed}
    new = {(type(obj), obj.metadata.name): obj for obj in (*change.nodes, *change.objects)}
    kept = [new.pop((type(obj), obj.metadata.name), obj) for obj in objects if obj.metadata.uid not in removed]
    return World(SETUP, [*kept, *new.values()], 0.0)


def single_changes(objects: list[Any], pod: Pod) -> Iterator[Change]:
    """Yield all single changes of simple kinds."""
    spec, nodes = pod.spec, [obj for obj in objects if isinstance(obj, Node)]

    def with_spec(**fields: Any) -> Change:
        return Change(POD, "", 0, pod=replace(pod, spec=replace(spec, **fields)))

    for key in spec.nodeSelector:
        yield with_spec(nodeSelector={name: value for name, value in spec.nodeSelector.items() if name != key})
    yield from tolerations(nodes, pod)
    yield from pods_removed(objects, pod)
    yield with_spec(topologySpreadConstraints=())
    yield with_spec(schedulingGates=())
    if spec.affinity is not None:
        for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
            yield with_spec(affinity=replace(spec.affinity, **{kind: None}))
    (container,) = spec.containers
    yield with_spec(containers=(replace(container, ports=()),))
    for cpu in range(6):
        resources = replace(container.resources, requests={"cpu": str(cpu)})
        yield with_spec(containers=(replace(container, resources=resources),))
    for node in nodes:
        yield from node_changes(node)
        yield from labelled(node)
        yield one_more_like(node)


def tolerations(nodes: list[Node], pod: Pod) -> Iterator[Change]:
    """Yield tolerations of each taint, and of all taints of each key."""
    wanted = {Toleration("node.kubernetes.io/unschedulable", "Exists")}
    for taint in {taint for node in nodes for taint in node.spec.taints}:
        wanted |= {Toleration(taint.key, "Equal", taint.value, taint.effect), Toleration(taint.key, "Exists")}
    for one in wanted:
        spec = replace(pod.spec, tolerations=(*pod.spec.tolerations, one))
        yield Change(POD, "", 0, pod=replace(pod, spec=spec))


def pods_removed(objects: list[Any], pod: Pod) -> Iterator[Change]:
    """Yield the removal of each pod of lower priority."""
    for other in objects:
        if isinstance(other, Pod) and (other.spec.priority or 0) < (pod.spec.priority or 0):
            yield Change(CLUSTER, "", 0, removed=(PodInfo(other),))


def labelled(node: Node) -> Iterator[Change]:
    """Yield the node with each label changed or removed."""
    for key in KEYS:
        rest = {name: value for name, value in node.metadata.labels.items() if name != key}
        for several in (rest, *({**rest, key: value} for value in VALUES)):
            yield Change(NODE, "", 0, nodes=(replace(node, metadata=replace(node.metadata, labels=several)),))


def one_more_like(node: Node) -> Change:
    several = {**node.metadata.labels, "kubernetes.io/hostname": "other"}
    new = replace(node, metadata=replace(node.metadata, name="other", uid="other", labels=several))
    return Change(CLUSTER, "", 0, nodes=(new,))


def node_changes(node: Node) -> Iterator[Change]:
    """Yield the node with each other single change."""

    def with_node(**fields: Any) -> Change:
        return Change(NODE, "", 0, nodes=(replace(node, **fields),))

    yield with_node(spec=replace(node.spec, unschedulable=False))
    for taint in node.spec.taints:
        kept: tuple[Taint, ...] = tuple(one for one in node.spec.taints if one != taint)
        yield with_node(spec=replace(node.spec, taints=kept))
    for resource, amount in (("cpu", "100"), ("pods", "1000")):
        allocatable = {**node.status.allocatable, resource: amount}
        yield with_node(status=replace(node.status, allocatable=allocatable))


def searched(objects: list[Any], pod: Pod) -> tuple[World, list[Found]]:
    world = World(SETUP, objects, 0.0)
    assume(not feasible_nodes(world, pod))
    return world, Search(world, pod).ranked()


@FEW
@given(worlds(), pods_to_place())
def test_the_pod_fits_after_every_suggestion(objects: list[Any], pod: Pod) -> None:
    """In a new world that is created with the change, exactly the listed nodes are feasible."""
    _, found = searched(objects, pod)
    for one in found:
        assert one.nodes
        assert feasible_nodes(after(objects, one.change), one.change.pod or pod) == one.nodes, one.change.text


def edited_as(pod: Pod, change: str) -> Pod:
    """Return the pod with its node affinity edited as the text of a change says; empty terms are removed."""
    assert pod.spec.affinity is not None
    tree = to_builtins(pod.spec.affinity)
    required = tree["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms = [
        {"matchExpressions": [one for one in term["matchExpressions"] if text_of(one) != change]}
        for term in required["nodeSelectorTerms"]
    ]
    required["nodeSelectorTerms"] = [term for term in terms if term["matchExpressions"]]
    if change == "node affinity removed" or not required["nodeSelectorTerms"]:
        return replace(pod, spec=replace(pod.spec, affinity=None))
    return replace(pod, spec=replace(pod.spec, affinity=convert(Affinity, tree)))


def text_of(condition: dict[str, Any]) -> str:
    return f"node affinity {condition['key']} {condition['operator']} {condition['values'][0]} removed"


@FEW
@given(st.lists(labels, min_size=1, max_size=3), choosy_pods())
def test_an_affinity_edited_as_the_text_says_opens_the_listed_nodes(labelled: list[dict[str, str]], pod: Pod) -> None:
    """The change that helps is exactly the change in the text."""
    world, found = searched([make_node(f"n{number}", labels=one) for number, one in enumerate(labelled)], pod)
    for one in found:
        if one.change.text.startswith("node affinity") and one.change.text.endswith("removed"):
            edited = edited_as(pod, one.change.text)
            assert set(one.nodes) <= set(feasible_nodes(world, edited)), one.change.text


@FEW
@given(worlds(), pods_to_place())
def test_a_change_is_suggested_if_a_single_change_helps(objects: list[Any], pod: Pod) -> None:
    """An exhaustive search over single changes finds no other change."""
    world, found = searched(objects, pod)
    if not found:
        assert not [change for change in single_changes(objects, pod) if feasible_after(world, pod, change)]


@FEW
@given(worlds(), pods_to_place())
def test_a_combination_of_changes_opens_a_node(objects: list[Any], pod: Pod) -> None:
    """Every obstacle in these worlds can be removed; in a new world with all changes, the node is feasible."""
    assume(not any(isinstance(obj, Pod) and obj.spec.affinity for obj in objects))
    world = World(SETUP, objects, 0.0)
    assume("n0" not in feasible_nodes(world, pod))
    steps = enough_together(world, pod, "n0")
    change = combine_changes(steps)
    assert "n0" in feasible_nodes(after(objects, change), change.pod or pod), change.text
    assert feasible_nodes(world, pod) == feasible_nodes(World(SETUP, objects, 0.0), pod)


@FEW
@given(worlds(), pods_to_place())
def test_changes_of_some_kinds_are_always_suggested_if_they_help(objects: list[Any], pod: Pod) -> None:
    """They are suggested in addition to other kinds of changes."""
    world, found = searched(objects, pod)
    nodes = [obj for obj in objects if isinstance(obj, Node)]
    result = [one.change.text for one in found]
    kinds = {
        "toleration of ": tolerations(nodes, pod),
        "pods of lower priority removed from ": pods_removed(objects, pod),
        "a node like ": map(one_more_like, nodes),
    }
    for prefix, changes in kinds.items():
        if not any(one.startswith(prefix) for one in result):
            assert not [change for change in changes if feasible_after(world, pod, change)], prefix
    if not any(one.startswith("label ") for one in result):
        # A label may also make other nodes feasible, because the pods need not be spread over this one.
        alone = [change for node in nodes for change in labelled(node)]
        assert not [change for change in alone if change.nodes[0].metadata.name in feasible_after(world, pod, change)]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(worlds(), pods_to_place())
def test_the_world_is_unchanged_after_a_search(objects: list[Any], pod: Pod) -> None:
    """Every trial is undone: the decision about the pod is that of a new world."""
    world, _ = searched(objects, pod)
    assert DryRun(world, PodInfo(pod)).decision() == DryRun(World(SETUP, objects, 0.0), PodInfo(pod)).decision()
