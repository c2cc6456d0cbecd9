"""Host ports, images, priority and start time of pods; zones of nodes; timestamps."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.images import normalized_image_name
from kubestow.api.pod import Pod
from kubestow.api.ports import ANY_IP, HostPort, host_ports
from kubestow.api.priority import pod_is_terminal, pod_priority, pod_start_time, preemption_policy
from kubestow.api.timestamps import format_micro_time, format_time, parse_time
from kubestow.api.topology import zone_of


def convert_pod(status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    return convert(Pod, {"spec": spec, "status": status or {}})


def test_host_ports_of_long_running_containers() -> None:
    """Containers and sidecars use host ports; other init containers and plain container ports do not."""
    taken = host_ports(
        convert_pod(
            containers=[
                {"ports": [{"containerPort": 80}, {"hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"}]}
            ],
            initContainers=[
                {"restartPolicy": "Always", "ports": [{"hostPort": 9090}]},
                {"ports": [{"hostPort": 7070}]},
            ],
        )
    )
    assert taken == (HostPort(ANY_IP, "TCP", 9090), HostPort("10.0.0.1", "UDP", 8080))


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (HostPort(ANY_IP, "TCP", 80), HostPort("10.0.0.1", "TCP", 80), True),
        (HostPort("10.0.0.1", "TCP", 80), HostPort("10.0.0.1", "TCP", 80), True),
        (HostPort("10.0.0.2", "TCP", 80), HostPort("10.0.0.1", "TCP", 80), False),
        (HostPort(ANY_IP, "UDP", 80), HostPort(ANY_IP, "TCP", 80), False),
        (HostPort(ANY_IP, "TCP", 81), HostPort(ANY_IP, "TCP", 80), False),
    ],
)
def test_port_conflicts(one: HostPort, other: HostPort, conflict: bool) -> None:
    """Two ports conflict on one address, or if one of them is on all addresses."""
    assert one.conflicts_with(other) is conflict
    assert other.conflicts_with(one) is conflict


@pytest.mark.parametrize(
    ("name", "normalized"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.27", "nginx:1.27"),
        ("registry:5000/nginx", "registry:5000/nginx:latest"),
        ("registry:5000/nginx:1", "registry:5000/nginx:1"),
        ("nginx@sha256:abc", "nginx@sha256:abc"),
    ],
)
def test_images_have_a_tag(name: str, normalized: str) -> None:
    """The default tag is `latest`; the port of a registry is not a tag."""
    assert normalized_image_name(name) == normalized


def test_priority_and_preemption() -> None:
    """Priority defaults to 0, and pods may preempt others unless their policy is Never."""
    assert pod_priority(convert_pod()) == 0
    assert pod_priority(convert_pod(priority=-5)) == -5
    assert preemption_policy(convert_pod()) == preemption_policy(convert_pod(preemptionPolicy="PreemptLowerPriority"))
    assert preemption_policy(convert_pod(preemptionPolicy="Never")) == "Never"


@pytest.mark.parametrize(("phase", "over"), [("Succeeded", True), ("Failed", True), ("Running", False), ("", False)])
def test_terminal_pods(phase: str, over: bool) -> None:
    """Pods that succeeded or failed are terminal."""
    assert pod_is_terminal(convert_pod({"phase": phase})) is over


def test_start_time() -> None:
    """The start time of a pod that has not started is now."""
    assert pod_start_time(convert_pod({"startTime": "1970-01-01T00:01:00Z"}), now=99.0) == 60.0
    assert pod_start_time(convert_pod(), now=99.0) == 99.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2026-01-31T12:00:00.250000Z", 1769860800.25),
        ("2026-01-31T14:00:00+02:00", 1769860800.0),
    ],
)
def test_timestamps_are_parsed(text: str, seconds: float) -> None:
    """Any RFC 3339 time is valid, in any zone and precision."""
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-31T12:00:00"])
def test_invalid_timestamps_are_rejected(text: str) -> None:
    """A time without a zone, or any other text, is an error that quotes it."""
    with pytest.raises(ValueError, match=repr(text)):
        parse_time(text)


def test_timestamps_are_formatted() -> None:
    """To the second for objects, to the microsecond for leases and events."""
    assert format_time(1769860800.9) == "2026-01-31T12:00:00Z"
    assert format_micro_time(1769860800.25) == "2026-01-31T12:00:00.250000Z"


def test_zones() -> None:
    """Region and zone identify a zone; legacy labels take precedence; without either label there is no zone."""
    new = {"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "a"}
    old = {"failure-domain.beta.kubernetes.io/region": "r", "failure-domain.beta.kubernetes.io/zone": "a"}
    assert zone_of(new) == zone_of(old) == zone_of({**new, **old})
    assert zone_of({**old, "topology.kubernetes.io/zone": "b"}) == zone_of(old)
    assert zone_of({**new, "topology.kubernetes.io/zone": "b"}) != zone_of(new)
    assert zone_of({"topology.kubernetes.io/zone": "a"}) != zone_of({"topology.kubernetes.io/region": "a"})
    assert zone_of({}) == ""
