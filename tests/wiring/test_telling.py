"""What the core tells, passed on: events in the right name, decisions kept, metrics counted, watches complete."""

from typing import Any

import pytest

from client.doubles import FixedClock
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.outcome import Failed, Placed
from kubestow.framework.results import Code
from kubestow.model import codec
from kubestow.model.pod import Pod
from kubestow.reporting.decisions import Decisions
from kubestow.reporting.metrics.catalogue import Metrics
from kubestow.wiring.observing import LiveObserver
from kubestow.wiring.recording import LiveRecorder
from kubestow.wiring.watches import WATCHED


def _pod(name: str, scheduler: str = "default-scheduler") -> Pod:
    meta = {"name": name, "namespace": "d", "uid": f"u-{name}", "resourceVersion": "7"}
    return codec.convert(Pod, {"metadata": meta, "spec": {"schedulerName": scheduler}})


class Events:
    def __init__(self) -> None:
        self.noted: list[tuple[Any, ...]] = []

    def record(self, *arguments: Any) -> None:
        self.noted.append(arguments)


def _recorder(events: Events) -> LiveRecorder:
    unchecked: Any = events
    return LiveRecorder(unchecked)


def test_events_speak_in_the_name_of_the_profile() -> None:
    """About a victim, the preemptor's profile speaks."""
    events = Events()
    recorder = _recorder(events)
    recorder.event(_pod("a", "one"), "Normal", "Scheduled", "Binding", "note")
    recorder.event(_pod("victim", "two"), "Normal", "Preempted", "Preempting", "note", related=_pod("vip", "one"))
    assert [noted[0] for noted in events.noted] == ["one", "one"]
    reference = events.noted[1][1]
    assert (reference.kind, reference.namespace, reference.name) == ("Pod", "d", "victim")
    assert (reference.uid, reference.resourceVersion, reference.apiVersion) == ("u-victim", "7", "v1")


def test_a_closed_recorder_is_silent() -> None:
    """What is abandoned at the end is no news."""
    events = Events()
    recorder = _recorder(events)
    recorder.close()
    recorder.event(_pod("a"), "Normal", "Scheduled", "Binding", "note")
    assert events.noted == []


@pytest.mark.parametrize(
    ("outcome", "result", "node"),
    [
        (Placed(PodInfo(_pod("p")), "n1", {}, 5, 3), "scheduled", "n1"),
        (Failed(Code.UNSCHEDULABLE, "no room", nominated_node="n2"), "unschedulable", "n2"),
        (Failed(Code.ERROR, "broken"), "error", ""),
    ],
)
def test_decisions_are_kept(outcome: Placed | Failed, result: str, node: str) -> None:
    """Each with its result and node."""
    decisions = Decisions()
    LiveObserver(Metrics(), decisions, FixedClock(5.0)).decided(_pod("p"), outcome, 0.25)
    (record,) = decisions
    assert (record.pod, record.outcome, record.node, record.time, record.seconds) == ("d/p", result, node, 5.0, 0.25)


def test_everything_kube_scheduler_watches_is_watched() -> None:
    """The same paths; pods that have ended are left out."""
    assert {resource.path for resource in WATCHED} == {
        "/api/v1/pods",
        "/api/v1/nodes",
        "/api/v1/namespaces",
        "/api/v1/services",
        "/api/v1/replicationcontrollers",
        "/api/v1/persistentvolumes",
        "/api/v1/persistentvolumeclaims",
        "/apis/apps/v1/replicasets",
        "/apis/apps/v1/statefulsets",
        "/apis/policy/v1/poddisruptionbudgets",
        "/apis/storage.k8s.io/v1/storageclasses",
        "/apis/storage.k8s.io/v1/csinodes",
        "/apis/storage.k8s.io/v1/csidrivers",
        "/apis/storage.k8s.io/v1/csistoragecapacities",
        "/apis/storage.k8s.io/v1/volumeattachments",
        "/apis/resource.k8s.io/v1/resourceclaims",
        "/apis/resource.k8s.io/v1/resourceslices",
        "/apis/resource.k8s.io/v1/deviceclasses",
    }
    selectors = {resource.plural: resource.field_selector for resource in WATCHED if resource.field_selector}
    assert selectors == {"pods": "status.phase!=Succeeded,status.phase!=Failed"}
