"""What can go wrong with an allocation."""


class AllocationError(Exception):
    """Something is wrong with the claims or their classes: no use to look at other nodes."""


class AllocationTimeoutError(AllocationError):
    """Looking for devices took too long."""
