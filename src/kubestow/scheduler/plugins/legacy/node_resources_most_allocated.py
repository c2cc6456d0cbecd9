"""NodeResourcesMostAllocated: prefers nodes with less free resources."""

from kubestow.config.plugin_args import NodeResourcesMostAllocatedArgs
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.plugins.legacy.resource_allocation import ResourceAllocation
from kubestow.scheduler.plugins.support.allocation_strategies import most_allocated


class NodeResourcesMostAllocated(ResourceAllocation):
    """Prefers nodes with less free resources."""

    name = "NodeResourcesMostAllocated"

    def __init__(self, args: NodeResourcesMostAllocatedArgs, handle: Handle) -> None:
        super().__init__(most_allocated, args.resources)
