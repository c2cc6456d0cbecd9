"""The result of a plugin for a row depends on that row only; a what-if gives the result of the changed cluster."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.framework.results import SKIP, Narrowed, Rejection
from kubestow.scheduler.queue.nominator import Nominator
from support.scheduler.random_clusters import PROFILES, clusters, kinds, pod_of, profile_on


def live_rows(cluster: Cluster) -> IntArray:
    return np.flatnonzero(cluster.nodes.live[: cluster.nodes.size])


def rejections_of(hook: Hook, state: Any, pod: PodInfo, view: Any, rows: Any) -> list[Rejection | None]:
    """Return the rejection of each row by a filter."""
    answer = hook.function(state, pod, view, rows)
    count = len(np.arange(view.size)[rows])
    if answer is None:
        return [None] * count
    assert len(answer.kinds) == count
    return [answer.words(int(kind)) if kind else None for kind in answer.kinds]


def state_of(hook: Hook, pod: PodInfo) -> Any:
    """Return the state of PreFilter; SKIP also if it rejects the pod."""
    if not hasattr(hook.plugin, "pre_filter"):
        return None
    state = hook.plugin.pre_filter(pod)
    if isinstance(state, Narrowed):
        return state.state
    return SKIP if isinstance(state, Rejection) else state


@given(cluster=clusters(), kind=kinds, profile=st.sampled_from(sorted(PROFILES)), data=st.data())
@settings(max_examples=100, deadline=None)
def test_filters_on_any_rows(cluster: Cluster, kind: str, profile: str, data: st.DataObject) -> None:
    """For every plugin, some rows in any order get the same result as among all rows; the cluster does not change."""
    made, pod, table = profile_on(cluster, Nominator(), profile), PodInfo(pod_of(kind, "p")), cluster.nodes
    live = live_rows(cluster).tolist()
    some = np.array(data.draw(st.lists(st.sampled_from(live), unique=True)) if live else [], np.int64)
    version = table.changes.last
    for hook in made.filter:
        state = state_of(hook, pod)
        if state is not SKIP:
            everywhere = rejections_of(hook, state, pod, table, slice(0, table.size))
            assert rejections_of(hook, state, pod, table, some) == [everywhere[row] for row in some], hook.name
    assert table.changes.last == version


@given(cluster=clusters(), kind=kinds, profile=st.sampled_from(sorted(PROFILES)), data=st.data())
@settings(max_examples=100, deadline=None)
def test_scores_on_any_rows(cluster: Cluster, kind: str, profile: str, data: st.DataObject) -> None:
    """For every plugin, rows get the score that they get among all rows, if PreScore got them."""
    made, pod, table = profile_on(cluster, Nominator(), profile), PodInfo(pod_of(kind, "p")), cluster.nodes
    live = live_rows(cluster)
    some = np.array(data.draw(st.lists(st.sampled_from(live.tolist()), unique=True)) if len(live) else [], np.int64)
    for hook in made.score:
        state = hook.plugin.pre_score(pod, table, live) if hasattr(hook.plugin, "pre_score") else None
        if state is not SKIP:
            everywhere = hook.function(state, pod, table, slice(0, table.size))
            assert hook.function(state, pod, table, some).tolist() == everywhere[some].tolist(), hook.name


@given(cluster=clusters(), kind=kinds, data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_what_if_is_equal_to_the_changed_cluster(cluster: Cluster, kind: str, data: st.DataObject) -> None:
    """Filters return the same for a row with simulated changes as for a cluster with real ones."""
    live = live_rows(cluster).tolist()
    if not live:
        return
    pod = PodInfo(pod_of(kind, "p"))
    row = data.draw(st.sampled_from(live))
    changes = _changes(cluster, row, data)
    nominator = Nominator()
    evaluation = Evaluation(profile_on(cluster, nominator), cluster, nominator, pod)
    if not evaluation.pre_filter():
        return
    before = _contents(cluster)
    states = evaluation.states_after(changes)
    view = what_if(cluster.nodes, [row])
    changed = _copy(cluster)
    for change in changes:
        if change.added:
            view.add_pod(0, change.pod)
            changed.assume(change.pod, cluster.nodes.names[row])
        else:
            view.remove_pod(0, change.pod)
            changed.remove_pod(change.pod.uid)
    real = profile_on(changed, nominator)
    changed_row = np.array([changed.nodes.row_of[cluster.nodes.names[row]]])
    for hook, really in zip(evaluation.profile.filter, real.filter, strict=True):
        if hook.name in evaluation.skipped:
            # As in kube-scheduler, a plugin that returned Skip is not called after changes.
            continue
        state = state_of(really, pod)
        expected = [None] if state is SKIP else rejections_of(really, state, pod, changed.nodes, changed_row)
        assert rejections_of(hook, states.get(hook.name), pod, view, slice(0, 1)) == expected, hook.name
    assert _contents(cluster) == before


def _changes(cluster: Cluster, row: int, data: st.DataObject) -> list[Change]:
    there = list(cluster.nodes.pods[row].values())
    gone = data.draw(st.lists(st.sampled_from(there), unique_by=lambda pod: pod.uid)) if there else []
    come = [PodInfo(pod_of(kind, f"new-{i}")) for i, kind in enumerate(data.draw(st.lists(kinds, max_size=3)))]
    return [Change(pod, row, added=False) for pod in gone] + [Change(pod, row, added=True) for pod in come]


def _copy(cluster: Cluster) -> Cluster:
    copy = Cluster()
    for node in cluster.nodes.nodes:
        if node is not None:
            copy.set_node(node)
    for pods in cluster.nodes.pods:
        for pod in pods.values():
            copy.set_pod(pod.pod)
    return copy


def _contents(cluster: Cluster) -> Any:
    table = cluster.nodes
    columns = (table.requested, table.non_zero, table.pod_count, table.changes.version)
    return [sorted(pods) for pods in table.pods], [column.tolist() for column in columns]
