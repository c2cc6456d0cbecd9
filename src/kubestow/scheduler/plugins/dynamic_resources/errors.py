"""Errors of an allocation."""


class AllocationError(Exception):
    """The claims or their classes are invalid, so that no other node can help."""


class AllocationTimeoutError(AllocationError):
    """The search for devices exceeded its time limit."""
