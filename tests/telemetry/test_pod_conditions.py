"""Pod conditions of pods that cannot be scheduled and of victims, and when they are not written."""

from typing import Any

import pytest

from kubestow.api.conditions import (
    MAX_NOTE_BYTES,
    disruption_target,
    scheduling_condition,
    status_patch,
    truncate_note,
)
from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod, PodCondition, PodStatus

NOW = 1_794_723_153.9
NOW_TEXT = "2026-11-15T06:12:33Z"
EARLIER = "2026-11-15T06:00:00Z"
REJECTED = PodCondition("PodScheduled", "False", "Unschedulable", "no room", 3, EARLIER)
BOUND = PodCondition("PodScheduled", "True", lastTransitionTime=EARLIER)


def pod_with_conditions(*conditions: PodCondition, generation: int = 3, nominated: str = "") -> Pod:
    return Pod(
        ObjectMeta(name="web", namespace="default", generation=generation),
        status=PodStatus(conditions=conditions, nominatedNodeName=nominated),
    )


@pytest.mark.parametrize(
    ("before", "reason", "message", "transition"),
    [
        ((), "Unschedulable", "no room", NOW_TEXT),
        ((), "SchedulerError", "timeout", NOW_TEXT),
        ((PodCondition("Ready", "False", "Unschedulable", "no room"),), "Unschedulable", "no room", NOW_TEXT),
        ((REJECTED,), "Unschedulable", "still no room", EARLIER),
        ((REJECTED,), "SchedulingGated", "no room", EARLIER),
        ((BOUND,), "Unschedulable", "no room", NOW_TEXT),
    ],
    ids=["first", "error", "another-condition", "new-message", "new-reason", "was-true"],
)
def test_condition_of_a_pod_that_was_not_scheduled(
    before: tuple[PodCondition, ...], reason: str, message: str, transition: str
) -> None:
    """The transition time changes only with the status."""
    assert scheduling_condition(pod_with_conditions(*before), reason, message, NOW) == PodCondition(
        "PodScheduled", "False", reason, message, 3, transition
    )


def test_an_unchanged_condition_is_not_written() -> None:
    """The same status, reason and message are not written again, even for a newer generation of the pod."""
    assert scheduling_condition(pod_with_conditions(REJECTED, generation=9), "Unschedulable", "no room", NOW) is None


def test_condition_of_a_victim() -> None:
    """The condition of a victim names the scheduler and the cause; it is written once."""
    condition = disruption_target(pod_with_conditions(BOUND), "default-scheduler", NOW)
    assert condition == PodCondition(
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
        3,
        NOW_TEXT,
    )
    assert disruption_target(pod_with_conditions(BOUND, condition), "default-scheduler", NOW + 60) is None


def test_victim_of_a_pod_group() -> None:
    """The condition names a pod group as the cause."""
    condition = disruption_target(pod_with_conditions(), "gangs", NOW, beneficiary="podgroup")
    assert condition is not None
    assert condition.message == "gangs: preempting to accommodate a higher priority podgroup"


FULL = {
    "lastProbeTime": None,
    "lastTransitionTime": NOW_TEXT,
    "message": "full",
    "observedGeneration": 3,
    "reason": "Unschedulable",
    "status": "False",
    "type": "PodScheduled",
}
NEW = PodCondition("PodScheduled", "False", "Unschedulable", "full", 3, NOW_TEXT)


@pytest.mark.parametrize(
    ("before", "condition", "nominated", "patch"),
    [
        (pod_with_conditions(), NEW, None, {"conditions": [FULL]}),
        (pod_with_conditions(), NEW, "n1", {"conditions": [FULL], "nominatedNodeName": "n1"}),
        (pod_with_conditions(), None, "n1", {"nominatedNodeName": "n1"}),
        (pod_with_conditions(nominated="n1"), None, "", {"nominatedNodeName": None}),
        (
            pod_with_conditions(PodCondition("Ready", "False")),
            NEW,
            None,
            {"$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}], "conditions": [FULL]},
        ),
        (
            pod_with_conditions(REJECTED),
            PodCondition("PodScheduled", "False", "Unschedulable", "full", 3, EARLIER),
            None,
            {
                "$setElementOrder/conditions": [{"type": "PodScheduled"}],
                "conditions": [{"message": "full", "type": "PodScheduled"}],
            },
        ),
        (pod_with_conditions(nominated="n1"), None, "n1", None),
        (pod_with_conditions(REJECTED), REJECTED, None, None),
        (pod_with_conditions(), None, None, None),
    ],
    ids=[
        "first-condition",
        "with-nomination",
        "nomination-only",
        "nomination-cleared",
        "beside-another",
        "changed-fields-only",
        "same-nomination",
        "same-condition",
        "nothing",
    ],
)
def test_status_patch(
    before: Pod, condition: PodCondition | None, nominated: str | None, patch: dict[str, Any] | None
) -> None:
    """The patch is the strategic merge patch from the old status to the new one; empty when they are the same."""
    assert status_patch(before, condition, nominated) == ({"status": patch} if patch is not None else {})


@pytest.mark.parametrize(
    ("message", "fitting"),
    [
        ("short", "short"),
        ("x" * MAX_NOTE_BYTES, "x" * MAX_NOTE_BYTES),
        ("x" * (MAX_NOTE_BYTES + 1), "x" * (MAX_NOTE_BYTES - 4) + " ..."),
        ("é" * 600, "é" * 510 + " ..."),
        ("x" + "é" * 600, "x" + "é" * 509 + " ..."),
    ],
    ids=["short", "just-fits", "too-long", "bytes-count", "no-torn-letter"],
)
def test_notes_are_truncated_to_the_limit_of_events(message: str, fitting: str) -> None:
    """A note has at most 1024 bytes; a truncated one has a mark at its end and is not cut inside a character."""
    assert truncate_note(message) == fitting
    assert len(fitting.encode()) <= MAX_NOTE_BYTES
