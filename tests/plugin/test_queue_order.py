"""The order of the queue may depend on objects: it follows their changes."""

from typing import Any

from kubestow.plugin import CustomObject, Handle, Pod, custom_resource
from kubestow.testing import SchedulerHarness, make_node, make_object, make_pod


@custom_resource("example.com/v1", "appgroups")
class AppGroup(CustomObject, frozen=True):
    order: tuple[str, ...] = ()


class ByAppGroup:
    """Sorts pods by their place in the first group; counts calls."""

    name = "ByAppGroup"
    watches = (AppGroup,)
    calls = 0

    def __init__(self, args: Any, handle: Handle) -> None:
        self._groups = handle.objects(AppGroup)
        self._groups.on_change(lambda _key, _group: handle.reorder_queue())
        type(self).calls = 0

    def sort_key(self, pod: Pod, waiting_since: float) -> tuple[float, ...]:
        type(self).calls += 1
        order = next((group.order for group in self._groups), ())
        name = pod.metadata.name
        return (order.index(name) if name in order else len(order), waiting_since)

    def pre_filter(self, pod: Any) -> None:
        """Accept any pod."""


CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    queueSort: {enabled: [{name: ByAppGroup}], disabled: [{name: PrioritySort}]}
"""


def test_pods_that_wait_are_sorted_again_when_an_object_changes() -> None:
    """All changes before the next pod leaves the queue cost one call for each waiting pod."""
    with SchedulerHarness(CONFIGURATION, plugins=[ByAppGroup]) as harness:
        harness.cluster.add(make_node("n1", cpu=8))
        names = [f"p{number}" for number in range(6)]
        for name in names:
            harness.core.queue.add(make_pod(name))
        before = ByAppGroup.calls
        for number in range(50):
            harness.core.intake.added(make_object(AppGroup, f"g{number}", order=names[::-1]))
        assert ByAppGroup.calls == before
        popped = [harness.core.queue.pop() for _ in names]
        assert [queued.pod.metadata.name for queued in popped if queued is not None] == names[::-1]
        assert ByAppGroup.calls == before + len(names)


def test_upcoming_pods_follow_the_new_order() -> None:
    """Pods that are evaluated ahead of time are those that come next."""
    with SchedulerHarness(CONFIGURATION, plugins=[ByAppGroup]) as harness:
        for name in ("a", "b", "c"):
            harness.core.queue.add(make_pod(name))
        harness.core.intake.added(make_object(AppGroup, "g", order=["c", "a", "b"]))
        assert [info.name for info in harness.core.queue.upcoming(2)] == ["c", "a"]
