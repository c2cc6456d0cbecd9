"""How many more gangs like one fit: copies of a pod group and its pods, placed by the scheduler until one is not."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from kubestow.model.pod import Pod
from kubestow.model.pod_groups import PodGroup, PodGroupStatus
from kubestow.offline.harness import SchedulerHarness
from kubestow.simulator.capacity import UNSCHEDULABLE, Capacity, restore, run_through, why_not


def gang_capacity(
    objects: Iterable[Any],
    group: PodGroup,
    pod: Pod,
    limit: int,
    exclude: Iterable[str],
    make: Callable[[], SchedulerHarness],
) -> Capacity:
    """How often a group of `minCount` copies of the pod fits; at most `limit` times if that is not 0."""
    with make() as harness:
        restore(harness, objects, exclude)
        found = Capacity(unit="gang", on_nodes={group.metadata.name: Counter()})
        while not limit or found.replicas < limit:
            name = f"{group.metadata.name}-more-{found.replicas}"
            harness.cluster.add(_renamed(replace(group, status=PodGroupStatus()), name))
            member = replace(pod.spec.schedulingGroup, podGroupName=name) if pod.spec.schedulingGroup else None
            spec = replace(pod.spec, nodeName="", preemptionPolicy="Never", schedulingGroup=member)
            pods = [
                harness.cluster.add(_renamed(replace(pod, spec=spec), f"{name}-{number}"))
                for number in range(group.min_count)
            ]
            run_through(harness)
            placed = [harness.cluster.pod(one.metadata.name, one.metadata.namespace).spec.nodeName for one in pods]
            if not all(placed):
                found.fail_type, found.stopped = UNSCHEDULABLE, group.metadata.name
                found.message = why_not(harness, pods[-1])
                return found
            found.replicas += 1
            found.on_nodes[group.metadata.name].update(placed)
        found.message = f"the limit of {limit} gangs is reached"
        return found


def _renamed(obj: Any, name: str) -> Any:
    return replace(obj, metadata=replace(obj.metadata, name=name, uid="", resourceVersion=""))
