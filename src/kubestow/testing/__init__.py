"""For people who write plugins, and for the project's own tests: all it takes to try a policy without a cluster.

Builders make nodes and pods in one line; `SchedulerHarness` runs a whole scheduler on a `FakeCluster` in virtual time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubestow.offline.event_log import EventLog, RecordedEvent
    from kubestow.offline.fake_cluster import Binding, FakeCluster
    from kubestow.offline.faults import Faults
    from kubestow.offline.handles import offline_handle
    from kubestow.offline.harness import SchedulerHarness
    from kubestow.offline.virtual_loop import StuckError, VirtualLoop
    from kubestow.testing.agreement import check_forms
    from kubestow.testing.builders import make_node, make_pod, make_pod_group

_HOMES = {
    "Binding": "kubestow.offline.fake_cluster",
    "EventLog": "kubestow.offline.event_log",
    "FakeCluster": "kubestow.offline.fake_cluster",
    "Faults": "kubestow.offline.faults",
    "RecordedEvent": "kubestow.offline.event_log",
    "SchedulerHarness": "kubestow.offline.harness",
    "StuckError": "kubestow.offline.virtual_loop",
    "VirtualLoop": "kubestow.offline.virtual_loop",
    "check_forms": "kubestow.testing.agreement",
    "make_node": "kubestow.testing.builders",
    "make_pod": "kubestow.testing.builders",
    "make_pod_group": "kubestow.testing.builders",
    "offline_handle": "kubestow.offline.handles",
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
    return getattr(import_module(home), name)
