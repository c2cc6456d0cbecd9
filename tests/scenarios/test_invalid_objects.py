"""Invalid objects: they are reported, affect no other object, and count as soon as they are corrected."""

import pytest

from kubestow.testing import make_node, make_pod
from support.plugins.device_world import claim, claiming, device, device_class, device_slice
from support.scenarios.start import Start

SENSELESS = "1x"


@pytest.mark.parametrize("nominated", ["", "n1"])
def test_a_pod_that_requests_an_invalid_amount(start: Start, nominated: str) -> None:
    """It fails with an error that names the amount, and is retried, until it is corrected."""
    harness = start()
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("bad", cpu=SENSELESS, status={"nominatedNodeName": nominated}))
    harness.cluster.add(make_pod("good", cpu="1"))
    harness.run_for(10.0)
    assert harness.bindings == {"default/good": "n1"}
    condition = harness.cluster.conditions("bad")["PodScheduled"]
    assert condition.reason == "SchedulerError"
    assert "quantity '1x'" in condition.message
    assert harness.place_of("bad") == "errorBackoff"
    harness.cluster.update(make_pod("bad", cpu="1"))
    harness.run_until_idle()
    assert harness.cluster.node_of("bad") == "n1"


def test_a_bound_pod_with_an_invalid_amount_is_not_counted_until_it_is_corrected(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """Waiting pods are retried when it shrinks afterwards."""
    harness = start()
    harness.cluster.add(make_node("n1", cpu="2"))
    harness.cluster.add(make_pod("bad", cpu=SENSELESS, node="n1"))
    harness.run_until_idle()
    assert harness.core.cluster.pod_count == 0
    assert "err=\"quantity '1x'" in caplog.messages[0]
    harness.cluster.update(make_pod("bad", cpu="2", node="n1"))
    harness.cluster.add(make_pod("next", cpu="1"))
    harness.run_until_idle()
    assert harness.place_of("next") == "unschedulable"
    harness.cluster.update(make_pod("bad", cpu="1", node="n1"))
    harness.run_until_idle()
    assert harness.cluster.node_of("next") == "n1"
    harness.cluster.delete(harness.cluster.pod("bad"), 0)
    harness.run_until_idle()
    assert harness.core.cluster.pod_count == 1


def test_a_node_with_an_invalid_amount_is_ignored(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """It is added when it is corrected."""
    harness = start()
    harness.cluster.add(make_node("n1", cpu=SENSELESS))
    harness.cluster.add(make_pod("p1"))
    harness.run_for(3.0)
    assert harness.events.notes("FailedScheduling")[0] == "no nodes available to schedule pods"
    assert "err=\"quantity '1x'" in caplog.messages[0]
    harness.cluster.update(make_node("n1", cpu="2"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p1") == "n1"


def test_a_slice_with_an_invalid_amount_offers_nothing(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """Its devices are not used until it is corrected; other devices are."""
    harness = start()
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(device_class())
    consumed = [{"counterSet": "set", "counters": {"units": {"value": "lots"}}}]
    harness.cluster.add(device_slice("n1", [device("odd", consumesCounters=consumed)], pool="a"))
    harness.cluster.add(device_slice("n1", [device("fine")], pool="b"))
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n1"}
    assert "err=\"quantity 'lots'" in caplog.messages[0]
