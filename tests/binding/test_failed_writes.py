"""Every failure of every write: what is tried again, what is reported, what is let go."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubestow.api.devices import ResourceClaim
from kubestow.api.failures import REASONS, RETRIABLE, CallError, LeaseLostError, NotFoundError
from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod, PodCondition
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.scheduler.binding.dispatcher import MAX_ATTEMPTS, Dispatcher
from kubestow.simulator.in_memory.faults import PROBLEMS, failure
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing import FakeCluster, VirtualLoop, make_pod

LATER = "may succeed later"
MISSING = "the object is gone"
REFUSED = "is refused for good"

FAILURES = {
    "BadRequest": REFUSED,
    "Unauthorized": REFUSED,
    "Forbidden": REFUSED,
    "NotFound": MISSING,
    "Conflict": REFUSED,
    "AlreadyExists": REFUSED,
    "Gone": REFUSED,
    "Expired": REFUSED,
    "Invalid": REFUSED,
    "TooManyRequests": LATER,
    "InternalError": LATER,
    "ServerTimeout": LATER,
    "ServiceUnavailable": LATER,
    "Timeout": LATER,
    "ConnectionLost": LATER,
    "ConnectionRefused": LATER,
    "BadAnswer": LATER,
}

RAISED, REPORTED, SILENT, WAS_GONE = "raised", "reported", "silent", "was gone"
ONCE, EVERY_TIME = 1, MAX_ATTEMPTS

WRITES: dict[str, dict[str, tuple[str, int]]] = {
    # A pod that could not be bound goes back to the queue, where all is looked at anew.
    "bind": {LATER: (RAISED, ONCE), MISSING: (RAISED, ONCE), REFUSED: (RAISED, ONCE)},
    "patch_pod_status": {LATER: (REPORTED, EVERY_TIME), MISSING: (SILENT, ONCE), REFUSED: (REPORTED, ONCE)},
    "delete_pod": {LATER: (RAISED, EVERY_TIME), MISSING: (WAS_GONE, ONCE), REFUSED: (RAISED, ONCE)},
    # The plugin that asked decides; its pod goes back to the queue.
    "update_volume": {LATER: (RAISED, ONCE), MISSING: (RAISED, ONCE), REFUSED: (RAISED, ONCE)},
    "update_claim": {LATER: (RAISED, ONCE), MISSING: (RAISED, ONCE), REFUSED: (RAISED, ONCE)},
    "update_resource_claim": {LATER: (RAISED, ONCE), MISSING: (RAISED, ONCE), REFUSED: (RAISED, ONCE)},
    "update_resource_claim_status": {LATER: (RAISED, ONCE), MISSING: (RAISED, ONCE), REFUSED: (RAISED, ONCE)},
}


async def make(write: str, dispatcher: Dispatcher, pod: Pod) -> Any:
    """One write, until it has ended."""
    if write == "patch_pod_status":
        dispatcher.patch_status(pod, PodCondition("PodScheduled", "False", "Unschedulable", "full"))
        return await dispatcher.drain()
    meta = ObjectMeta(name="x", namespace="default")
    volume, claim = PersistentVolume(metadata=ObjectMeta(name="x")), PersistentVolumeClaim(metadata=meta)
    devices = ResourceClaim(metadata=meta)
    writes: dict[str, Callable[[], Awaitable[Any]]] = {
        "bind": lambda: dispatcher.bind(pod, "n1"),
        "delete_pod": lambda: dispatcher.evict(pod, None),
        "update_volume": lambda: dispatcher.update_volume(volume, {}),
        "update_claim": lambda: dispatcher.update_claim(claim, {}),
        "update_resource_claim": lambda: dispatcher.update_resource_claim(devices, {}),
        "update_resource_claim_status": lambda: dispatcher.update_resource_claim_status(devices, {}),
    }
    return await writes[write]()


def what_happens(write: str, problem: str, caplog: pytest.LogCaptureFixture) -> tuple[str, int, Exception | None]:
    """How a write ends that always meets the problem, after how many calls."""
    loop = VirtualLoop()
    try:
        cluster = FakeCluster(loop, loop.clock)
        cluster.faults.fail(write, problem, times=None)
        error = None
        try:
            answer = loop.run(make(write, Dispatcher(cluster, SchedulerMetrics()), cluster.add(make_pod("p"))))
        except CallError as raised:
            ending, error = RAISED, raised
        else:
            ending = REPORTED if caplog.records else WAS_GONE if answer is False else SILENT
        return ending, sum(call.call == write for call in cluster.calls), error
    finally:
        loop.close()


def test_every_failure_is_in_the_table() -> None:
    """A new kind of failure needs a decision; every reason that servers give has its type."""
    assert set(FAILURES) == set(PROBLEMS)
    assert set(REASONS) <= set(PROBLEMS)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("problem", FAILURES)
def test_what_happens_to_a_write_that_fails(write: str, problem: str, caplog: pytest.LogCaptureFixture) -> None:
    """By the type of its failure alone."""
    ending, calls, error = what_happens(write, problem, caplog)
    assert (ending, calls) == WRITES[write][FAILURES[problem]]
    if error is not None:
        assert type(error) is type(failure(write, problem))


@pytest.mark.parametrize("problem", FAILURES)
def test_types_say_what_may_succeed_later(problem: str) -> None:
    """The table and the types agree."""
    error = failure("bind", problem)
    assert isinstance(error, RETRIABLE) == (FAILURES[problem] == LATER)
    assert isinstance(error, NotFoundError) == (FAILURES[problem] == MISSING)


def test_a_lost_lease_is_final() -> None:
    """Nothing is tried again by an instance that must not act."""
    assert not issubclass(LeaseLostError, RETRIABLE)
