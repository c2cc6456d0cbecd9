"""SchedulingGates: holds a pod until its scheduling gates are removed."""

from collections.abc import Sequence
from typing import Any

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import Rejection, unresolvable


class SchedulingGates:
    """Keeps pods with scheduling gates out of the active queue."""

    name = "SchedulingGates"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        if not pod.spec.schedulingGates:
            return None
        gates = " ".join(gate.name for gate in pod.spec.schedulingGates)
        return unresolvable(f"waiting for scheduling gates: [{gates}]")

    def requeue_on(self) -> Sequence[Registration]:
        return [on(Resource.TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)]
