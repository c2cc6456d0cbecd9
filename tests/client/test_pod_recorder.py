"""Events about pods, told in the right name."""

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
