"""A plugin that rejects all nodes until it is switched off."""

from typing import Any

from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plain import NodeRow


class Moody:
    """Rejects every node while `refuses` is set; new nodes retry its pods."""

    name = "Moody"
    refuses = True

    def __init__(self, args: Any, handle: Handle) -> None:
        Moody.refuses = True

    def requeue_on(self) -> list[Registration]:
        return [on(Resource.NODE, Action.ADD)]

    def filter(self, state: Any, pod: PodInfo, node: NodeRow) -> str | None:
        return "not in the mood" if self.refuses else None
