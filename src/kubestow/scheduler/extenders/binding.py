"""Binding by the extender that manages a pod, instead of the Bind plugins."""

from kubestow.api.pod import Pod
from kubestow.scheduler.extenders.extender import CallExtenders
from kubestow.scheduler.extenders.protocol import Extenders


class ExtenderBinding:
    """Binds pods by an extender."""

    def __init__(self, extenders: Extenders, ask: CallExtenders) -> None:
        self._extenders = extenders
        self._ask = ask

    async def __call__(self, pod: Pod, node: str) -> bool:
        """Bind a pod. Return False if no extender has bound it, so that the plugins must; raises ExtenderError."""
        call = self._extenders.binding(pod, node)
        if call is None:
            return False
        [answer] = await self._ask([call])
        return self._extenders.has_bound(call, answer)
