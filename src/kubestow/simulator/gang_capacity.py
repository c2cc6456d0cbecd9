"""How many more gangs like one fit: copies of a pod group and its pods, placed by the scheduler until one is not."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from kubestow.model.pod import Pod
from kubestow.model.pod_groups import PodGroup, PodGroupStatus
from kubestow.offline.harness import SchedulerHarness
from kubestow.simulator.capacity import UNSCHEDULABLE, Capacity, restore, run_through, why_not, with_one_more
from kubestow.simulator.copies import PodCopies


def gang_capacity(
    objects: Sequence[Any],
    group: PodGroup,
    pod: Pod,
    limit: int,
    exclude: Iterable[str],
    make: Callable[[], SchedulerHarness],
) -> Capacity:
    """How often a group of `minCount` copies of the pod fits; at most `limit` times if that is not 0."""
    with make() as harness:
        restore(harness, objects, exclude)
        return _Filling(harness, group, pod, PodCopies(harness.cluster, objects)).run(limit)


class _Filling:
    def __init__(self, harness: SchedulerHarness, group: PodGroup, pod: Pod, copies: PodCopies) -> None:
        self._harness = harness
        self._copies = copies
        self._group = replace(group, status=PodGroupStatus())
        self._pod = replace(pod, spec=replace(pod.spec, nodeName=""))
        self._count = 0

    def run(self, limit: int) -> Capacity:
        name = self._group.metadata.name
        found = Capacity(unit="gang", on_nodes={name: Counter()})
        while not limit or found.replicas < limit:
            gang, pods = self._place()
            if not all(pod.spec.nodeName for pod in pods):
                found.fail_type, found.stopped = UNSCHEDULABLE, name
                found.message = why_not(self._harness, pods[-1])
                self._delete(gang, pods)
                found.one_more = {kind: self._fitting() for kind in with_one_more(self._harness)}
                return found
            found.replicas += 1
            found.on_nodes[name].update(pod.spec.nodeName for pod in pods)
        found.message = f"the limit of {limit} gangs is reached"
        return found

    def _place(self) -> tuple[PodGroup, list[Pod]]:
        """Try one more gang; its pods are returned as they are then."""
        cluster, spec = self._harness.cluster, self._pod.spec
        name = f"{self._group.metadata.name}-more-{self._count}"
        self._count += 1
        metadata = replace(self._group.metadata, name=name, uid="", resourceVersion="")
        gang = cluster.add(replace(self._group, metadata=metadata))
        member = replace(spec.schedulingGroup, podGroupName=name) if spec.schedulingGroup else None
        pod = replace(self._pod, spec=replace(spec, schedulingGroup=member))
        added = [self._copies.add(pod, name) for _ in range(self._group.min_count)]
        run_through(self._harness)
        return gang, [cluster.pod(one.metadata.name, one.metadata.namespace) for one in added]

    def _fitting(self) -> int:
        """How many gangs fit now; none of them stays."""
        gangs = [self._place()]
        while all(pod.spec.nodeName for pod in gangs[-1][1]):
            gangs.append(self._place())
        for gang, pods in gangs:
            self._delete(gang, pods)
        return len(gangs) - 1

    def _delete(self, gang: PodGroup, pods: list[Pod]) -> None:
        for pod in pods:
            self._copies.delete(pod)
        self._harness.cluster.delete(gang)
        run_through(self._harness)
