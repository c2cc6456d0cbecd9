"""The victims on a node, and the message if preemption does not help."""

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.post_filter import run_post_filter
from kubestow.scheduler.extenders.extender import run_until_calls
from kubestow.scheduler.framework.results import Code, unschedulable
from kubestow.testing.builders import make_node, make_pod
from support.plugins.preemption_world import World
from support.settled import settled


def test_the_fewest_and_least_important_pods_are_evicted() -> None:
    """The most important pods of lower priority stay while they fit."""
    world = World("a")
    world.run("important", "a", cpu="1", priority=5)
    world.run("middling", "a", cpu="1", priority=3)
    world.run("least", "a", cpu="2", priority=1)
    result = world.preempt(make_pod("vip", cpu="2", priority=10))
    assert result.code is Code.SUCCESS
    assert result.nominated_node == "a"
    assert [victim.name for victim in result.victims] == ["least"]
    found = "found a potential placement for pod on node a, preempting 1 victims"
    assert result.message == f"preemption: {found}"


def test_a_less_important_pod_stays_if_it_fits() -> None:
    """A more important pod that does not fit is evicted; a smaller, less important one stays."""
    world = World("a")
    world.run("big", "a", cpu="3", priority=5)
    world.run("small", "a", cpu="1", priority=1)
    assert world.victims(make_pod("vip", cpu="3", priority=10)) == ["big"]


def test_of_equal_priority_the_longest_running_stays() -> None:
    """Pods that have not started are evicted first."""
    world = World("a")
    world.run("young", "a", cpu="1", started=5_000.0)
    world.run("old", "a", cpu="2", started=1_000.0)
    world.run("unstarted", "a", cpu="1", started=None)
    assert world.victims(make_pod("vip", cpu="1", priority=10)) == ["unstarted"]
    assert world.victims(make_pod("vip", cpu="2", priority=10)) == ["young", "unstarted"]


def test_pods_of_the_same_priority_are_never_evicted() -> None:
    """Nodes without pods of lower priority are counted in the message."""
    world = World("a", "b")
    for node in ("a", "b"):
        world.run(f"peer-{node}", node, cpu="4", priority=10)
    result = world.preempt(make_pod("vip", cpu="2", priority=10))
    assert result.code is Code.UNSCHEDULABLE
    assert result.message == ("preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.")
    assert result.nominated_node == ""


def test_the_message_counts_every_node() -> None:
    """No victims, not helpful, and the reasons with all victims removed: each with its number of nodes."""
    world = World("peer", "mixed", "other")
    world.cluster.set_node(make_node("small", cpu="1"))
    world.run("peer", "peer", cpu="4", priority=10)
    world.run("mixed-high", "mixed", cpu="3", priority=10)
    world.run("mixed-low", "mixed", cpu="1", priority=0)
    world.cluster.set_node(make_node("other", unschedulable=True))
    result = world.preempt(make_pod("vip", cpu="2", priority=10))
    assert result.message == (
        "preemption: 0/4 nodes are available: 1 Insufficient cpu, "
        "1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    )


def test_pods_with_conflicting_ports_are_evicted() -> None:
    """The victim is the pod with the host port, not the least important one."""
    world = World("a")
    world.run("holder", "a", cpu="1", priority=5, host_ports=[80])
    world.run("bystander", "a", cpu="1", priority=0)
    assert world.victims(make_pod("vip", cpu="1", priority=10, host_ports=[80])) == ["holder"]


def test_pods_with_conflicting_anti_affinity_are_evicted() -> None:
    """A pod whose anti-affinity rejects the preemptor is evicted, and its neighbors stay."""
    world = World("a", "b")
    apart = {
        "labelSelector": {"matchLabels": {"app": "vip"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    objecting = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    world.run("guard-a", "a", cpu="1", priority=5, spec=objecting)
    world.run("neighbour", "a", cpu="1", priority=0)
    world.run("guard-b", "b", cpu="1", priority=10, spec=objecting)
    result = world.preempt(make_pod("vip", cpu="1", priority=10, labels={"app": "vip"}))
    assert result.nominated_node == "a"
    assert [victim.name for victim in result.victims] == ["guard-a"]


def test_pods_that_exceed_the_skew_are_evicted() -> None:
    """With a spread constraint, evicting a counted pod reduces the skew of its zone."""
    world = World()
    for name, zone in (("a", "west"), ("b", "east")):
        world.cluster.set_node(make_node(name, zone=zone))
    world.run("counted", "a", cpu="1", priority=0, labels={"app": "vip"})
    world.run("other", "a", cpu="1", priority=0)
    world.run("filler", "b", cpu="4", priority=10)
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "vip"}},
    }
    pod = make_pod("vip", cpu="1", priority=10, labels={"app": "vip"}, spec={"topologySpreadConstraints": [constraint]})
    assert world.victims(pod) == ["counted"]


def test_dynamic_resources_fails_if_its_pre_filter_was_not_called() -> None:
    """As in kube-scheduler, preemption is then not tried."""
    world = World("a")
    world.run("low", "a", cpu="4", priority=0)
    pod = make_pod("vip", cpu="1", priority=10, claims=["nosuch"])
    evaluation = world.evaluate(pod)
    result = world.preempt(pod)
    assert result.code is Code.ERROR
    assert evaluation.message(result.message) == (
        '0/1 nodes are available: persistentvolumeclaim "nosuch" not found. not found'
    )


def test_a_node_that_needs_no_eviction_is_an_error() -> None:
    """If the pod fits without eviction, the node is not a candidate, and the message reports an error."""
    world = World("a", "b")
    for node in ("a", "b"):
        world.run(f"low-{node}", node, cpu="1")
    pod = PodInfo(make_pod("vip", cpu="1", priority=10))
    evaluation = Evaluation(world.profile, world.cluster, world.nominator, pod)
    assert evaluation.pre_filter()
    evaluation.rejected = unschedulable("not now")
    result = settled(run_until_calls(run_post_filter(world.profile, evaluation, None)))
    assert result.code is Code.ERROR
    errors = [f'expected at least one victim pod on node "{node}"' for node in ("a", "b")]
    assert result.message in {f"preemption: [{', '.join(order)}]" for order in (errors, errors[::-1])}
