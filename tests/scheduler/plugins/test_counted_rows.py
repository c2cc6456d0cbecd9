"""Plugins whose states count pods on many nodes report the nodes that have such pods."""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.framework.results import Rejection, Skip
from kubestow.scheduler.queue.nominator import Nominator
from support.scheduler.random_clusters import PROFILES, clusters, kinds, pod_of, profile_on


@given(cluster=clusters(), kind=kinds, profile=st.sampled_from(sorted(PROFILES)))
@settings(deadline=None, max_examples=200)
def test_removing_pods_of_uncounted_nodes_keeps_the_state(cluster: Cluster, kind: str, profile: str) -> None:
    """Removing the pods of a row that is not counted returns the same state object."""
    made, pod, table = profile_on(cluster, Nominator(), profile), PodInfo(pod_of(kind, "p")), cluster.nodes
    for bound in made.pre_filter:
        plugin = bound.plugin
        if not hasattr(plugin, "counted_rows"):
            continue
        state = plugin.pre_filter(pod)
        if isinstance(state, Skip | Rejection):
            continue
        counted = plugin.counted_rows(state, pod)
        assert len(counted) == table.size
        event(f"{plugin.name} counts {'some' if counted.any() else 'none'}")
        for row in (~counted).nonzero()[0].tolist():
            gone = [Change(other, row, added=False) for other in table.pods[row].values()]
            assert plugin.with_changes(state, pod, gone) is state
