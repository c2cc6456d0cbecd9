"""DefaultBinder: binds the pod with a Binding object."""

from typing import Any

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle


class DefaultBinder:
    """Binds every pod."""

    name = "DefaultBinder"

    def __init__(self, args: Any, handle: Handle) -> None:
        self._api = handle.api

    async def bind(self, pod: PodInfo, node: str) -> None:
        await self._api.bind(pod.pod, node)
