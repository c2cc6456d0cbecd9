"""Tools to test plugins and scheduling policies without a cluster.

Builders create nodes and pods in one line; `check_forms` compares the plain and fast forms of a plugin.

Promise: `SchedulerHarness` runs the real scheduler on a `FakeCluster` in virtual time, and does not sleep.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubestow.scheduler.offline_handle import offline_handle
    from kubestow.simulator.in_memory.event_log import EventLog, RecordedEvent
    from kubestow.simulator.in_memory.fake_cluster import Binding, FakeCluster
    from kubestow.simulator.in_memory.faults import Faults
    from kubestow.simulator.in_memory.harness import SchedulerHarness
    from kubestow.simulator.in_memory.virtual_loop import StuckError, VirtualLoop
    from kubestow.testing.agreement import check_forms
    from kubestow.testing.builders import make_composite_pod_group, make_node, make_object, make_pod, make_pod_group

_MODULES = {
    "Binding": "kubestow.simulator.in_memory.fake_cluster",
    "EventLog": "kubestow.simulator.in_memory.event_log",
    "FakeCluster": "kubestow.simulator.in_memory.fake_cluster",
    "Faults": "kubestow.simulator.in_memory.faults",
    "RecordedEvent": "kubestow.simulator.in_memory.event_log",
    "SchedulerHarness": "kubestow.simulator.in_memory.harness",
    "StuckError": "kubestow.simulator.in_memory.virtual_loop",
    "VirtualLoop": "kubestow.simulator.in_memory.virtual_loop",
    "check_forms": "kubestow.testing.agreement",
    "make_composite_pod_group": "kubestow.testing.builders",
    "make_node": "kubestow.testing.builders",
    "make_object": "kubestow.testing.builders",
    "make_pod": "kubestow.testing.builders",
    "make_pod_group": "kubestow.testing.builders",
    "offline_handle": "kubestow.scheduler.offline_handle",
}

__all__ = [
    "Binding",
    "EventLog",
    "FakeCluster",
    "Faults",
    "RecordedEvent",
    "SchedulerHarness",
    "StuckError",
    "VirtualLoop",
    "check_forms",
    "make_composite_pod_group",
    "make_node",
    "make_object",
    "make_pod",
    "make_pod_group",
    "offline_handle",
]


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that importing the builders does not import the whole scheduler.
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)
