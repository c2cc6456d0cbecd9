"""The record of decisions: the newest are kept, and found by pod."""

import pytest

from kubestow.reporting.decisions import SCHEDULED, UNSCHEDULABLE, DecisionRecord, Decisions


def record(number: int, outcome: str = SCHEDULED) -> DecisionRecord:
    return DecisionRecord(float(number), f"default/p{number % 3}", f"uid-{number % 3}", outcome)


def test_the_oldest_are_forgotten() -> None:
    """A full record keeps the newest decisions, newest first."""
    decisions = Decisions(capacity=3)
    for number in range(5):
        decisions.record(record(number))
    assert [decision.time for decision in decisions] == [4, 3, 2]
    assert [decision.time for decision in list(decisions)[:2]] == [4, 3]
    assert len(decisions) == 3


@pytest.mark.parametrize("pod", ["default/p1", "uid-1"])
def test_decisions_about_one_pod(pod: str) -> None:
    """A pod's attempts are found by its name or uid."""
    decisions = Decisions()
    for number in range(6):
        decisions.record(record(number, UNSCHEDULABLE if number < 3 else SCHEDULED))
    assert [(found.time, found.outcome) for found in decisions.of_pod(pod)] == [(4, SCHEDULED), (1, UNSCHEDULABLE)]


def test_a_record_without_room_is_refused() -> None:
    """A capacity below one is an error that names it."""
    with pytest.raises(ValueError, match="at least one, not 0"):
        Decisions(capacity=0)
