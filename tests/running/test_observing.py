"""What the core tells, passed on: decisions are kept."""

import pytest

from client.doubles import FixedClock
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.outcome import Failed, Placed
from kubestow.framework.results import Code
from kubestow.model import codec
from kubestow.model.pod import Pod
from kubestow.reporting.decisions import Decisions
from kubestow.running.observing import telling

POD = codec.convert(Pod, {"metadata": {"name": "p", "namespace": "d", "uid": "u"}})


@pytest.mark.parametrize(
    ("outcome", "result", "node"),
    [
        (Placed(PodInfo(POD), "n1", {}, 5, 3), "scheduled", "n1"),
        (Failed(Code.UNSCHEDULABLE, "no room", nominated_node="n2"), "unschedulable", "n2"),
        (Failed(Code.ERROR, "broken"), "error", ""),
    ],
)
def test_decisions_are_kept(outcome: Placed | Failed, result: str, node: str) -> None:
    """Each with its result and node."""
    decisions = Decisions()
    telling(decisions, FixedClock(5.0))(POD, outcome, 0.25)
    (record,) = decisions
    assert (record.pod, record.outcome, record.node, record.time, record.seconds) == ("d/p", result, node, 5.0, 0.25)
