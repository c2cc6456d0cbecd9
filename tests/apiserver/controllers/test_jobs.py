"""Jobs: parallelism, failures, outcomes and status."""

import itertools
from typing import Any

import pytest

from kubestow.api.timestamps import format_time
from kubestow.apiserver.store.records import Change
from support.apiserver.world import START, World, template

JOBS = "jobs.batch"
INDEX = "batch.kubernetes.io/job-completion-index"


def job(annotations: dict[str, str] | None = None, policy: str = "Never", **spec: Any) -> dict[str, Any]:
    """Return the spec of a Job."""
    return {"template": template("i", annotations, restartPolicy=policy), **spec}


def ended(world: World, name: str = "j", limit: float = 20_000) -> dict[str, Any]:
    """Return the status of a Job after it has ended."""

    def end() -> dict[str, Any] | None:
        status = world.status(JOBS, name)
        ends = [one for one in status.get("conditions", ()) if one["type"] in ("Complete", "Failed")]
        return status if ends else None

    found: dict[str, Any] = world.until(end, limit)
    return found


def conditions(status: dict[str, Any]) -> list[tuple[str, str]]:
    """Return type and reason of conditions."""
    return [(one["type"], one["reason"]) for one in status["conditions"]]


def test_a_job_runs_to_completion(world: World) -> None:
    """The parallelism is a maximum; the end has two steps, and no pod keeps the finalizer."""
    most = []
    world.watch(
        "pods", lambda _: most.append(sum(1 for one in world.all("pods") if one["status"]["phase"] == "Running"))
    )
    world.create(JOBS, "j", job(completions=5, parallelism=2))
    status = ended(world)
    assert (status["succeeded"], status["completionTime"]) == (5, format_time(START + 33))
    assert conditions(status) == [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
    assert max(most) == 2
    assert all("finalizers" not in one["metadata"] for one in world.all("pods"))
    assert world.events("Job")[-1] == ("Completed", "Job completed")


def test_without_completions_the_first_success_decides(world: World) -> None:
    """Running pods finish, no new ones are created."""
    world.create(JOBS, "j", job(parallelism=3))
    status = ended(world)
    assert status["succeeded"] == 3
    assert len(world.all("pods")) == 3


def test_a_job_adopts_and_releases_pods(world: World) -> None:
    """An orphan is adopted; a pod without the labels is released and replaced."""
    world.create(JOBS, "j", job({"run-seconds": "inf"}, parallelism=2, completions=2))
    world.run(5)
    lost, strange = (one["metadata"]["name"] for one in world.all("pods"))
    world.update("pods", lost, lambda one: one["metadata"].pop("ownerReferences"))
    world.update("pods", strange, lambda one: one["metadata"].pop("labels"))
    world.run(5)
    owned = [one for one in world.all("pods") if one["metadata"].get("ownerReferences")]
    assert len(owned) == 2
    assert lost in [one["metadata"]["name"] for one in owned]
    assert all("finalizers" in one["metadata"] for one in owned)
    assert "finalizers" not in world.get("pods", strange)["metadata"]


def test_a_job_fails_after_the_backoff_limit(world: World) -> None:
    """The delay doubles: 10, 20, 40 seconds."""
    world.create(JOBS, "j", job({"exit-code": "3"}, backoffLimit=3))
    starts = []
    world.watch("pods", lambda change: starts.append(world.clock.time - START) if change.type == "ADDED" else None)
    status = ended(world)
    assert (status["failed"], status.get("succeeded", 0)) == (4, 0)
    assert conditions(status) == [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
    gaps = [round(later - earlier - 11) for earlier, later in itertools.pairwise(starts)]
    assert gaps == [10, 20, 40]
    assert world.events("Job")[-1] == ("BackoffLimitExceeded", "Job has reached the specified backoff limit")


def test_restarts_count_where_pods_are_restarted(world: World) -> None:
    """With restartPolicy OnFailure the same pod restarts up to the limit."""
    world.create(JOBS, "j", job({"exit-code": "3"}, "OnFailure", backoffLimit=2))
    status = ended(world)
    assert conditions(status)[-1] == ("Failed", "BackoffLimitExceeded")
    assert len({one["metadata"]["name"] for one in world.all("pods")}) <= 1


def test_a_job_that_takes_too_long_fails(world: World) -> None:
    """After activeDeadlineSeconds; its pods are stopped."""
    world.create(JOBS, "j", job({"run-seconds": "inf"}, activeDeadlineSeconds=60))
    status = ended(world)
    assert conditions(status)[-1] == ("Failed", "DeadlineExceeded")
    assert (status.get("active", 0), status["failed"]) == (0, 1)
    assert 60 <= world.clock.time - START <= 63


def test_each_index_gets_one_pod(world: World) -> None:
    """The pod contains its index."""
    world.create(JOBS, "j", job(completions=4, parallelism=3, completionMode="Indexed"))
    status = ended(world)
    assert status["completedIndexes"] == "0-3"
    pods = world.all("pods")
    assert sorted(one["metadata"]["labels"][INDEX] for one in pods) == ["0", "1", "2", "3"]
    first = next(one for one in pods if one["metadata"]["annotations"][INDEX] == "0")
    assert first["metadata"]["name"].startswith("j-0-")
    assert first["spec"]["hostname"] == "j-0"
    assert first["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


def test_a_failed_index_is_retried(world: World) -> None:
    """Other indexes are not."""
    world.create(
        JOBS, "j", job({"fail-indexes": "1"}, completions=3, parallelism=3, completionMode="Indexed", backoffLimit=1)
    )
    status = ended(world)
    assert (status["completedIndexes"], status["failed"]) == ("0,2", 2)
    tried = sorted(one["metadata"]["labels"][INDEX] for one in world.all("pods"))
    assert tried == ["0", "1", "1", "2"]


def indexed(annotations: dict[str, str], **spec: Any) -> dict[str, Any]:
    """Return an indexed Job of five with backoffLimitPerIndex."""
    limits: dict[str, Any] = {
        "completions": 5,
        "parallelism": 5,
        "completionMode": "Indexed",
        "backoffLimitPerIndex": 1,
    }
    return job(annotations, **{**limits, **spec})


def test_indexes_fail_independently(world: World) -> None:
    """With backoffLimitPerIndex the others continue; the Job fails when all have ended."""
    world.create(JOBS, "j", indexed({"fail-indexes": "1,3"}))
    status = ended(world)
    assert (status["completedIndexes"], status["failedIndexes"], status["failed"]) == ("0,2,4", "1,3", 4)
    assert conditions(status) == [("FailureTarget", "FailedIndexes"), ("Failed", "FailedIndexes")]
    again = [one for one in world.all("pods") if one["metadata"]["labels"][INDEX] == "3"]
    counts = [one["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] for one in again]
    assert counts == ["0", "1"]


def test_too_many_failed_indexes_end_a_job_early(world: World) -> None:
    """maxFailedIndexes."""
    world.create(JOBS, "j", indexed({"fail-indexes": "0-4"}, parallelism=1, backoffLimitPerIndex=0, maxFailedIndexes=1))
    status = ended(world)
    assert conditions(status)[-1] == ("Failed", "MaxFailedIndexesExceeded")
    assert status["failedIndexes"] == "0,1"


def rule(action: str, **more: Any) -> dict[str, Any]:
    """Return a pod failure policy of one rule."""
    return {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [42]}, **more}]}


def test_a_policy_fails_a_job_at_once(world: World) -> None:
    """The message names the rule."""
    world.create(JOBS, "j", job({"exit-code": "42"}, podFailurePolicy=rule("FailJob"), parallelism=2, completions=2))
    status = ended(world)
    assert conditions(status)[-1] == ("Failed", "PodFailurePolicy")
    assert "matching FailJob rule at index 0" in status["conditions"][-1]["message"]


def test_a_policy_fails_an_index_at_once(world: World) -> None:
    """Regardless of the remaining retries."""
    world.create(
        JOBS,
        "j",
        indexed({"fail-indexes": "2", "exit-code": "42"}, backoffLimitPerIndex=5, podFailurePolicy=rule("FailIndex")),
    )
    status = ended(world)
    assert (status["failedIndexes"], status["failed"]) == ("2", 1)


def test_ignored_failures_do_not_count(world: World) -> None:
    """An evicted pod is replaced without counting."""
    policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
    world.create(JOBS, "j", job({"run-seconds": "60"}, backoffLimit=0, podFailurePolicy=policy))
    world.run(10)
    (pod,) = world.pods()
    world.update(
        "nodes",
        pod["spec"]["nodeName"],
        lambda one: one.setdefault("spec", {}).update(
            taints=[{"key": "t", "effect": "NoExecute"}, {"key": "t", "effect": "NoSchedule"}]
        ),
    )
    status = ended(world)
    assert (conditions(status)[-1][0], status.get("failed", 0), status["succeeded"]) == ("Complete", 0, 1)


@pytest.mark.parametrize(
    ("rules", "succeeded"),
    [([{"succeededCount": 2}], 2), ([{"succeededIndexes": "0,1"}], 2), ([{"succeededCount": 4}], 4)],
)
def test_a_success_policy_ends_a_job(world: World, rules: list[dict[str, Any]], succeeded: int) -> None:
    """Running pods are stopped, and do not count as failed."""
    spec = indexed({}, parallelism=2, successPolicy={"rules": rules})
    del spec["backoffLimitPerIndex"]
    world.create(JOBS, "j", spec)
    status = ended(world)
    assert conditions(status) == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]
    assert (status["succeeded"], status.get("failed", 0)) == (succeeded, 0)


def test_a_suspended_job_can_be_resumed(world: World) -> None:
    """Its pods are deleted, its start time is set again, events are recorded."""
    world.create(JOBS, "j", job({"run-seconds": "30"}, suspend=True))
    world.run(5)
    assert world.all("pods") == []
    assert "startTime" not in world.status(JOBS, "j")
    world.set(JOBS, "j", suspend=False)
    world.run(5)
    assert world.status(JOBS, "j")["active"] == 1
    world.set(JOBS, "j", suspend=True)
    world.run(5)
    assert (world.pods(), world.status(JOBS, "j").get("active", 0)) == ([], 0)
    world.set(JOBS, "j", suspend=False)
    ended(world)
    counts = {one["reason"]: one["count"] for one in world.all("events")}
    assert (counts["Suspended"], counts["Resumed"]) == (2, 2)


@pytest.mark.parametrize(("policy", "together"), [("TerminatingOrFailed", True), ("Failed", False)])
def test_a_pod_is_replaced_at_deletion_or_after_it(world: World, policy: str, together: bool) -> None:
    """podReplacementPolicy, with a pod that takes long to stop."""
    world.create(JOBS, "j", job({"run-seconds": "inf", "stop-seconds": "20"}, podReplacementPolicy=policy))
    world.run(5)
    (pod,) = world.pods()
    world.delete("pods", pod["metadata"]["name"])
    world.run(15)
    assert (len(world.all("pods")) == 2) is together
    assert world.status(JOBS, "j")["terminating"] == 1
    world.run(30)
    assert (len(world.pods()), world.status(JOBS, "j")["failed"]) == (1, 1)


def test_a_finished_job_is_deleted_after_its_time_to_live(world: World) -> None:
    """ttlSecondsAfterFinished, with its pods."""
    world.create(JOBS, "j", job(ttlSecondsAfterFinished=100))
    ended(world)
    world.run(99)
    assert world.find(JOBS, "j") is not None
    world.run(5)
    assert (world.find(JOBS, "j"), world.all("pods")) == (None, [])


def test_a_job_of_another_controller_is_ignored(world: World) -> None:
    """managedBy."""
    world.create(JOBS, "j", job(managedBy="example.com/other"))
    world.run(60)
    assert world.all("pods") == []


def test_shrinking_parallelism_stops_pods(world: World) -> None:
    """Surplus pods are deleted."""
    world.create(JOBS, "j", job({"run-seconds": "inf"}, completions=6, parallelism=4))
    world.run(5)
    world.set(JOBS, "j", parallelism=1)
    world.run(5)
    assert (len(world.pods()), world.status(JOBS, "j")["active"]) == (1, 1)


@pytest.mark.parametrize("how", ["Background", "Foreground", "Orphan"])
def test_a_deleted_job_does_not_block_its_pods(world: World, how: str) -> None:
    """The tracking finalizer is removed."""
    world.create(JOBS, "j", job({"run-seconds": "inf"}))
    world.run(5)
    world.delete(JOBS, "j", propagation=how)
    world.run(20)
    assert world.find(JOBS, "j") is None
    assert [one["metadata"].get("finalizers") for one in world.all("pods")] == ([None] if how == "Orphan" else [])


def test_a_pod_that_is_deleted_before_it_ran_counts_as_failed() -> None:
    """No other controller would end it."""
    world = World(schedules=False)
    world.create(JOBS, "j", job(podReplacementPolicy="Failed"))
    world.run(5)
    (pod,) = world.pods()
    world.delete("pods", pod["metadata"]["name"])
    world.run(60)
    assert world.status(JOBS, "j")["failed"] == 1
    assert len(world.all("pods")) == 1


def test_every_pod_is_counted_exactly_once(world: World) -> None:
    """In any order in which the pods end."""
    seen: list[int] = []

    def note(change: Change) -> None:
        status = change.record.object().get("status", {})
        seen.append(status.get("succeeded", 0) + status.get("failed", 0))

    world.watch(JOBS, note)
    world.create(JOBS, "j", job({"failure-rate": "0.4"}, completions=12, parallelism=5, backoffLimit=100))
    status = ended(world)
    assert seen == sorted(seen)
    phases = world.phases()
    assert (status["succeeded"], status["failed"]) == (phases.count("Succeeded"), phases.count("Failed"))
    assert status["succeeded"] == 12
    assert status["failed"] > 0
