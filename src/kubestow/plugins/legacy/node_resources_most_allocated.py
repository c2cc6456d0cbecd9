"""NodeResourcesMostAllocated: the fuller a node, the better."""

from kubestow.config.plugin_args import NodeResourcesMostAllocatedArgs
from kubestow.framework.handle import Handle
from kubestow.plugins.legacy.resource_allocation import ResourceAllocation
from kubestow.plugins.support.allocation_strategies import most_allocated


class NodeResourcesMostAllocated(ResourceAllocation):
    """Prefers nodes with little room."""

    name = "NodeResourcesMostAllocated"

    def __init__(self, args: NodeResourcesMostAllocatedArgs, handle: Handle) -> None:
        super().__init__(most_allocated, args.resources)
