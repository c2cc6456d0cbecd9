"""NodeResourcesLeastAllocated: the emptier a node, the better."""

from kubestow.config.plugin_args import NodeResourcesLeastAllocatedArgs
from kubestow.framework.handle import Handle
from kubestow.plugins.legacy.resource_allocation import ResourceAllocation
from kubestow.plugins.support.allocation_strategies import least_allocated


class NodeResourcesLeastAllocated(ResourceAllocation):
    """Prefers nodes with much room."""

    name = "NodeResourcesLeastAllocated"

    def __init__(self, args: NodeResourcesLeastAllocatedArgs, handle: Handle) -> None:
        super().__init__(least_allocated, args.resources)
