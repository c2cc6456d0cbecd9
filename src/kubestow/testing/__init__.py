"""For people who write plugins, and for the project's own tests: all it takes to try a policy without a cluster.

Builders make nodes and pods in one line; `SchedulerHarness` runs a whole scheduler on a `FakeCluster` in virtual time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubestow.testing.agreement import check_forms
    from kubestow.testing.builders import make_node, make_pod, make_pod_group
    from kubestow.testing.event_log import EventLog, RecordedEvent
    from kubestow.testing.fake_cluster import Binding, FakeCluster
    from kubestow.testing.faults import Faults
    from kubestow.testing.handles import offline_handle
    from kubestow.testing.harness import SchedulerHarness
    from kubestow.testing.virtual_loop import StuckError, VirtualLoop

_HOMES = {
    "Binding": "fake_cluster",
    "EventLog": "event_log",
    "FakeCluster": "fake_cluster",
    "Faults": "faults",
    "RecordedEvent": "event_log",
    "SchedulerHarness": "harness",
    "StuckError": "virtual_loop",
    "VirtualLoop": "virtual_loop",
    "check_forms": "agreement",
    "make_node": "builders",
    "make_pod": "builders",
    "make_pod_group": "builders",
    "offline_handle": "handles",
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
    "make_node",
    "make_pod",
    "make_pod_group",
    "offline_handle",
]


def __getattr__(name: str) -> Any:
    # The builders alone should not cost the import of a whole scheduler.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
