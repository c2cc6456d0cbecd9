"""NodeResourcesLeastAllocated: prefers nodes with more free resources."""

from kubestow.config.plugin_args import NodeResourcesLeastAllocatedArgs
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.plugins.legacy.resource_allocation import ResourceAllocation
from kubestow.scheduler.plugins.support.allocation_strategies import least_allocated


class NodeResourcesLeastAllocated(ResourceAllocation):
    """Prefers nodes with more free resources."""

    name = "NodeResourcesLeastAllocated"

    def __init__(self, args: NodeResourcesLeastAllocatedArgs, handle: Handle) -> None:
        super().__init__(least_allocated, args.resources)
