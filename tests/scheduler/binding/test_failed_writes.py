"""Every failure of every write: whether it is retried, raised, logged or ignored."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubestow.api.devices import ResourceClaim
from kubestow.api.failures import REASONS, RETRIABLE, CallError, LeaseLostError, NotFoundError
from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod, PodCondition
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.scheduler.binding.dispatcher import BIND_PAUSES, PAUSES, Dispatcher
from kubestow.simulator.in_memory.faults import PROBLEMS, failure
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing import FakeCluster, VirtualLoop, make_pod

LATER = "may succeed later"
SOON = "may succeed soon: the server did nothing"
CONFLICT = "an update of the object came first"
MISSING = "the object was deleted"
REFUSED = "is rejected"

FAILURES = {
    "BadRequest": REFUSED,
    "Unauthorized": REFUSED,
    "Forbidden": REFUSED,
    "NotFound": MISSING,
    "Conflict": CONFLICT,
    "AlreadyExists": CONFLICT,
    "Gone": REFUSED,
    "Expired": REFUSED,
    "Invalid": REFUSED,
    "TooManyRequests": LATER,
    "InternalError": SOON,
    "ServerTimeout": SOON,
    "ServiceUnavailable": SOON,
    "Timeout": LATER,
    "ConnectionLost": LATER,
    "ConnectionRefused": SOON,
    "BadAnswer": LATER,
}

RAISED, REPORTED, SILENT, WAS_GONE = "raised", "reported", "silent", "was gone"
ONCE, FOR_A_MOMENT, EVERY_TIME = 1, len(BIND_PAUSES) + 1, len(PAUSES) + 1

WRITES: dict[str, dict[str, tuple[str, int]]] = {
    # A pod that could not be bound goes back to the queue and is scheduled again.
    "bind": {SOON: (RAISED, FOR_A_MOMENT), LATER: (RAISED, ONCE), MISSING: (RAISED, ONCE), REFUSED: (RAISED, ONCE)},
    # A patch has no precondition that a conflict could mean.
    "patch_pod_status": {
        LATER: (REPORTED, EVERY_TIME),
        CONFLICT: (REPORTED, EVERY_TIME),
        MISSING: (SILENT, ONCE),
        REFUSED: (REPORTED, ONCE),
    },
    "delete_pod": {LATER: (RAISED, EVERY_TIME), MISSING: (WAS_GONE, ONCE), REFUSED: (RAISED, ONCE)},
    # The plugin handles the failure; its pod goes back to the queue.
    "update_volume": {LATER: (RAISED, ONCE), MISSING: (RAISED, ONCE), REFUSED: (RAISED, ONCE)},
    "update_claim": {LATER: (RAISED, ONCE), MISSING: (RAISED, ONCE), REFUSED: (RAISED, ONCE)},
    "update_resource_claim": {LATER: (RAISED, ONCE), MISSING: (RAISED, ONCE), REFUSED: (RAISED, ONCE)},
    "update_resource_claim_status": {LATER: (RAISED, ONCE), MISSING: (RAISED, ONCE), REFUSED: (RAISED, ONCE)},
}


async def make(write: str, dispatcher: Dispatcher, pod: Pod) -> Any:
    """Make one write, and wait until it has ended."""
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


def result_of(write: str, problem: str, caplog: pytest.LogCaptureFixture) -> tuple[str, int, Exception | None]:
    """Return how a write ends that always fails with a problem, the number of calls, and the exception."""
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
    """Every kind of failure has an entry; every reason of the API has its exception type."""
    assert set(FAILURES) == set(PROBLEMS)
    assert set(REASONS) <= set(PROBLEMS)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("problem", FAILURES)
def test_the_result_of_a_write_that_fails(write: str, problem: str, caplog: pytest.LogCaptureFixture) -> None:
    """It depends on the type of the failure alone."""
    ending, calls, error = result_of(write, problem, caplog)
    wanted = FAILURES[problem]
    alike = REFUSED if wanted == CONFLICT else LATER
    assert (ending, calls) == WRITES[write].get(wanted, WRITES[write][alike])
    if error is not None:
        assert type(error) is type(failure(write, problem))


@pytest.mark.parametrize("problem", FAILURES)
def test_exception_types_agree_with_the_table(problem: str) -> None:
    """Retriable failures and missing objects have their own types."""
    error = failure("bind", problem)
    assert isinstance(error, RETRIABLE) == (FAILURES[problem] in (SOON, LATER))
    assert isinstance(error, NotFoundError) == (FAILURES[problem] == MISSING)


def test_a_lost_lease_is_final() -> None:
    """An instance without the lease does not retry anything."""
    assert not issubclass(LeaseLostError, RETRIABLE)
