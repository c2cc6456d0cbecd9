"""Events about pods under the name of the right profile."""

from typing import Any

from kubestow.api import codec
from kubestow.api.pod import Pod
from kubestow.client.recording import PodRecorder


def _pod(name: str, scheduler: str = "default-scheduler") -> Pod:
    meta = {"name": name, "namespace": "d", "uid": f"u-{name}", "resourceVersion": "7"}
    return codec.convert(Pod, {"metadata": meta, "spec": {"schedulerName": scheduler}})


class Events:
    def __init__(self) -> None:
        self.noted: list[tuple[Any, ...]] = []

    def record(self, *arguments: Any) -> None:
        self.noted.append(arguments)


def _recorder(events: Events) -> PodRecorder:
    unchecked: Any = events
    return PodRecorder(unchecked)


def test_events_are_reported_by_the_profile() -> None:
    """An event about a victim is reported by the profile of the preemptor."""
    events = Events()
    recorder = _recorder(events)
    recorder.event(_pod("a", "one"), "Normal", "Scheduled", "Binding", "note")
    recorder.event(_pod("victim", "two"), "Normal", "Preempted", "Preempting", "note", related=_pod("vip", "one"))
    assert [noted[0] for noted in events.noted] == ["one", "one"]
    reference = events.noted[1][1]
    assert (reference.kind, reference.namespace, reference.name) == ("Pod", "d", "victim")
    assert (reference.uid, reference.resourceVersion, reference.apiVersion) == ("u-victim", "7", "v1")


def test_a_closed_recorder_drops_events() -> None:
    """Events after `close` are dropped."""
    events = Events()
    recorder = _recorder(events)
    recorder.close()
    recorder.event(_pod("a"), "Normal", "Scheduled", "Binding", "note")
    assert events.noted == []
