"""RequestedToCapacityRatio: scores nodes by a configured function of their utilization."""

from kubestow.config.plugin_args import RequestedToCapacityRatioArgs
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.plugins.legacy.resource_allocation import ResourceAllocation
from kubestow.scheduler.plugins.support.allocation_strategies import requested_to_capacity_ratio


class RequestedToCapacityRatio(ResourceAllocation):
    """Scores nodes by a piecewise linear function of their utilization."""

    name = "RequestedToCapacityRatio"

    def __init__(self, args: RequestedToCapacityRatioArgs, handle: Handle) -> None:
        super().__init__(requested_to_capacity_ratio(args.shape), args.resources)
