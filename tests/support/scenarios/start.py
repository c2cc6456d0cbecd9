"""The type of the fixture `start` of scenarios."""

from collections.abc import Callable

from kubestow.testing import SchedulerHarness

Start = Callable[..., SchedulerHarness]
"""Starts a scheduler; it takes the arguments of SchedulerHarness."""
