"""The extenders of the current configuration. Cycles, the binder and plugins read them here, also after a reload."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubestow.config.configuration import Extender
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.extenders.extender import CallExtenders, refuse_calls

if TYPE_CHECKING:
    from kubestow.scheduler.extenders.protocol import Extenders


class ConfiguredExtenders:
    """The extenders for pods whose cycle or binding starts now; none initially."""

    def __init__(self, current: "Extenders | None" = None, *, ask: CallExtenders = refuse_calls) -> None:
        """`ask` calls the extender that binds a pod."""
        self.current = current
        self.ask = ask
        self.configured: tuple[Extender, ...] = ()

    def configure(self, configured: Sequence[Extender], table: NodeTable) -> None:
        """Use these extenders from now on."""
        self.configured = tuple(configured)
        if not configured:
            self.current = None
            return
        # Imported on demand: most configurations have no extenders.
        from kubestow.scheduler.extenders.protocol import Extenders

        self.current = Extenders(configured, table)

    def supports_preemption(self, pod: PodInfo) -> bool:
        """Return whether an extender must be called before pods are evicted for a pod."""
        return self.current is not None and self.current.supports_preemption(pod)
