"""SchedulingGates, PrioritySort and DefaultBinder: before and after a node is chosen."""

import asyncio
from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.results import unresolvable
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.default_binder import DefaultBinder
from kubestow.scheduler.plugins.priority_sort import PrioritySort
from kubestow.scheduler.plugins.scheduling_gates import SchedulingGates
from kubestow.testing.builders import make_pod
from support.plugins.plugin_calls import hint, make


def test_gates_keep_a_pod_out_of_the_queue() -> None:
    """The message names all gates; a pod without gates is queued."""
    plugin = make(SchedulingGates)
    gated = plugin.pre_enqueue(make_pod("p", gates=["a.example/x", "b.example/y"]))
    assert gated == unresolvable("waiting for scheduling gates: [a.example/x b.example/y]")
    assert plugin.pre_enqueue(make_pod("p")) is None


def test_removing_gates_requeues() -> None:
    """Only the removal of the last gate of the pod itself."""
    plugin, gated, free = make(SchedulingGates), make_pod("p", gates=["g"]), make_pod("p")
    assert hint(plugin, gated, gated, free) is True
    assert hint(plugin, make_pod("q"), gated, free) is None
    assert hint(plugin, gated, make_pod("p", gates=["g", "h"]), gated) is None


def test_pods_are_ordered_by_priority() -> None:
    """Equal priorities are ordered by waiting time; no priority is 0."""
    plugin = make(PrioritySort)
    pods = {"late": (5, 20.0), "early": (5, 10.0), "low": (-1, 1.0), "unset": (None, 2.0), "high": (9, 99.0)}
    keys = {name: plugin.sort_key(make_pod(name, priority=p), since) for name, (p, since) in pods.items()}
    assert sorted(pods, key=keys.__getitem__) == ["high", "early", "late", "unset", "low"]


class Api:
    """Records bindings."""

    def __init__(self, error: Exception | None = None) -> None:
        self.bound: list[tuple[str, str]] = []
        self._error = error

    async def bind(self, pod: Pod, node: str) -> None:
        if self._error is not None:
            raise self._error
        self.bound.append((pod.key, node))


def binder(api: Any) -> Any:
    return DefaultBinder(None, offline_handle(Cluster(), api=api))


def test_the_binder_binds() -> None:
    """Each pod is bound with one call."""
    api = Api()
    assert asyncio.run(binder(api).bind(PodInfo(make_pod("p")), "n0")) is None
    assert api.bound == [("default/p", "n0")]


def test_errors_of_the_api_server_are_raised() -> None:
    """The error has the message of the server."""
    with pytest.raises(RuntimeError, match="pod is gone"):
        asyncio.run(binder(Api(RuntimeError("pod is gone"))).bind(PodInfo(make_pod("p")), "n0"))
