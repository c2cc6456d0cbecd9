"""Random worlds: every suggestion really lets the pod fit, and where a single change would help, one is suggested.

Of tolerations, labels, pods of lower priority gone and nodes added, one is suggested wherever one of that kind helps.
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
from kubestow.insight.explain.changes import CLUSTER, NODE, POD, Change, as_one, fitting, opened
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
    """A few nodes, and pods on them."""
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
    """A pod with some of every kind of constraint."""
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
    """A pod that asks for nothing but nodes of any one of several kinds."""
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
    """A new world in which the change was made from the beginning."""
    gone = {pod.uid for pod in change.gone}
    new = {(type(obj), obj.metadata.name): obj for obj in (*change.nodes, *change.objects)}
    kept = [new.pop((type(obj), obj.metadata.name), obj) for obj in objects if obj.metadata.uid not in gone]
    return World(SETUP, [*kept, *new.values()], 0.0)


def single_changes(objects: list[Any], pod: Pod) -> Iterator[Change]:
    """All that one could think of, without thinking."""
    spec, nodes = pod.spec, [obj for obj in objects if isinstance(obj, Node)]

    def with_spec(**fields: Any) -> Change:
        return Change(POD, "", 0, pod=replace(pod, spec=replace(spec, **fields)))

    for key in spec.nodeSelector:
        yield with_spec(nodeSelector={name: value for name, value in spec.nodeSelector.items() if name != key})
    yield from tolerations(nodes, pod)
    yield from pods_gone(objects, pod)
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
    """Of any taint, or of all of a key."""
    wanted = {Toleration("node.kubernetes.io/unschedulable", "Exists")}
    for taint in {taint for node in nodes for taint in node.spec.taints}:
        wanted |= {Toleration(taint.key, "Equal", taint.value, taint.effect), Toleration(taint.key, "Exists")}
    for one in wanted:
        spec = replace(pod.spec, tolerations=(*pod.spec.tolerations, one))
        yield Change(POD, "", 0, pod=replace(pod, spec=spec))


def pods_gone(objects: list[Any], pod: Pod) -> Iterator[Change]:
    """One pod of lower priority, wherever it is."""
    for other in objects:
        if isinstance(other, Pod) and (other.spec.priority or 0) < (pod.spec.priority or 0):
            yield Change(CLUSTER, "", 0, gone=(PodInfo(other),))


def labelled(node: Node) -> Iterator[Change]:
    """A node with one label different."""
    for key in KEYS:
        rest = {name: value for name, value in node.metadata.labels.items() if name != key}
        for several in (rest, *({**rest, key: value} for value in VALUES)):
            yield Change(NODE, "", 0, nodes=(replace(node, metadata=replace(node.metadata, labels=several)),))


def one_more_like(node: Node) -> Change:
    several = {**node.metadata.labels, "kubernetes.io/hostname": "other"}
    new = replace(node, metadata=replace(node.metadata, name="other", uid="other", labels=several))
    return Change(CLUSTER, "", 0, nodes=(new,))


def node_changes(node: Node) -> Iterator[Change]:
    """A node with one thing different."""

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
    assume(not fitting(world, pod))
    return world, Search(world, pod).ranked()


@FEW
@given(worlds(), pods_to_place())
def test_every_suggestion_really_makes_it_fit(objects: list[Any], pod: Pod) -> None:
    """Made in a new world from the beginning, it opens the very nodes that are told."""
    _, found = searched(objects, pod)
    for one in found:
        assert one.nodes
        assert fitting(after(objects, one.change), one.change.pod or pod) == one.nodes, one.change.words


def taken_at_its_word(pod: Pod, change: str) -> Pod:
    """The pod after somebody has edited its node affinity as a change says: a term that says nothing more is gone."""
    assert pod.spec.affinity is not None
    tree = to_builtins(pod.spec.affinity)
    required = tree["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms = [
        {"matchExpressions": [one for one in term["matchExpressions"] if words_of(one) != change]}
        for term in required["nodeSelectorTerms"]
    ]
    required["nodeSelectorTerms"] = [term for term in terms if term["matchExpressions"]]
    if change == "node affinity dropped" or not required["nodeSelectorTerms"]:
        return replace(pod, spec=replace(pod.spec, affinity=None))
    return replace(pod, spec=replace(pod.spec, affinity=convert(Affinity, tree)))


def words_of(condition: dict[str, Any]) -> str:
    return f"node affinity {condition['key']} {condition['operator']} {condition['values'][0]} dropped"


@FEW
@given(st.lists(labels, min_size=1, max_size=3), choosy_pods())
def test_an_affinity_that_is_changed_as_it_is_told_opens_the_nodes_that_are_told(
    labelled: list[dict[str, str]], pod: Pod
) -> None:
    """What helps is what the words say, not more of it."""
    world, found = searched([make_node(f"n{number}", labels=one) for number, one in enumerate(labelled)], pod)
    for one in found:
        if one.change.words.startswith("node affinity") and one.change.words.endswith("dropped"):
            assert set(one.nodes) <= set(fitting(world, taken_at_its_word(pod, one.change.words))), one.change.words


@FEW
@given(worlds(), pods_to_place())
def test_where_a_single_change_helps_one_is_suggested(objects: list[Any], pod: Pod) -> None:
    """Exhaustive search over single changes finds nothing that was overlooked."""
    world, found = searched(objects, pod)
    if not found:
        assert not [change for change in single_changes(objects, pod) if opened(world, pod, change)]


@FEW
@given(worlds(), pods_to_place())
def test_enough_is_found_to_open_a_node(objects: list[Any], pod: Pod) -> None:
    """No obstacle is here that cannot be taken away; made in a new world all at once, the changes open the node."""
    assume(not any(isinstance(obj, Pod) and obj.spec.affinity for obj in objects))
    world = World(SETUP, objects, 0.0)
    assume("n0" not in fitting(world, pod))
    steps = enough_together(world, pod, "n0")
    change = as_one(steps)
    assert "n0" in fitting(after(objects, change), change.pod or pod), change.words
    assert fitting(world, pod) == fitting(World(SETUP, objects, 0.0), pod)


@FEW
@given(worlds(), pods_to_place())
def test_of_some_kinds_one_is_suggested_wherever_one_helps(objects: list[Any], pod: Pod) -> None:
    """Whatever else was found: another kind of change is no reason to leave these out."""
    world, found = searched(objects, pod)
    nodes = [obj for obj in objects if isinstance(obj, Node)]
    told = [one.change.words for one in found]
    kinds = {
        "toleration of ": tolerations(nodes, pod),
        "pods of lower priority gone from ": pods_gone(objects, pod),
        "a node like ": map(one_more_like, nodes),
    }
    for words, changes in kinds.items():
        if not any(one.startswith(words) for one in told):
            assert not [change for change in changes if opened(world, pod, change)], words
    if not any(one.startswith("label ") for one in told):
        # A label may also open other nodes, which then need not be spread over this one.
        alone = [change for node in nodes for change in labelled(node)]
        assert not [change for change in alone if change.nodes[0].metadata.name in opened(world, pod, change)]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(worlds(), pods_to_place())
def test_the_world_is_as_before(objects: list[Any], pod: Pod) -> None:
    """Whatever was tried was taken back: the pod is decided as in a new world."""
    world, _ = searched(objects, pod)
    assert DryRun(world, PodInfo(pod)).decision() == DryRun(World(SETUP, objects, 0.0), PodInfo(pod)).decision()
