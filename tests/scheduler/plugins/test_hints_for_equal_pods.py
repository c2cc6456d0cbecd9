"""Hints registered with `alike=True` return the same result for equal pods."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubestow.api.pod import Pod, PodStatus
from kubestow.scheduler.cluster.changes import events_of
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.queue.nominator import Nominator
from support.scheduler.random_clusters import PROFILES, clusters, kinds, nodes, pod_of, profile_on

pods = st.builds(pod_of, kinds, st.sampled_from(["x", "y"]), node=st.sampled_from(["", "n0"]))
objects = st.one_of(
    st.tuples(st.none() | nodes("n0"), st.none() | nodes("n0")), st.tuples(st.none() | pods, st.none() | pods)
)


def results(profile: Profile, waiting: Pod, old: Any, new: Any) -> list[tuple[str, bool]]:
    """Return the result of each such hint, by plugin."""
    events = events_of(old, new, waiting)
    return [
        (plugin, bool(wish.hint(waiting, old, new)))
        for plugin, wishes in profile.registrations.items()
        for wish in wishes
        if wish.alike and wish.hint is not None and any(wish.event.covers(event) for event in events)
    ]


@given(cluster=clusters(), kind=kinds, change=objects, profile=st.sampled_from(sorted(PROFILES)))
@settings(deadline=None)
def test_hints_ignore_name_and_status(cluster: Cluster, kind: str, change: Any, profile: str) -> None:
    """Unless the event concerns the waiting pod, only its namespace, labels, owners and spec matter."""
    old, new = change
    if old is None and new is None:
        return
    if isinstance(old, Pod) and isinstance(new, Pod):
        new = replace(new, metadata=replace(new.metadata, uid=old.metadata.uid, name=old.metadata.name))
    made = profile_on(cluster, Nominator(), profile)
    one = pod_of(kind, "one")
    other = replace(pod_of(kind, "other"), status=PodStatus(phase="Pending", nominatedNodeName="n0"))
    assert results(made, one, old, new) == results(made, other, old, new)


def test_most_hints_apply_to_equal_pods() -> None:
    """These are hints about nodes, and those of plugins that read many pods."""
    made = profile_on(Cluster(), Nominator())
    alike = {plugin for plugin, wishes in made.registrations.items() if any(wish.alike for wish in wishes)}
    assert {"InterPodAffinity", "PodTopologySpread", "NodeAffinity", "TaintToleration", "NodeResourcesFit"} <= alike
