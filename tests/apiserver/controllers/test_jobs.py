"""Jobs: how many pods at once, how often they may fail, how it ends and what is told."""

import itertools
from typing import Any

import pytest

from apiserver.world import START, World, template
from kubestow.api.timestamps import format_time
from kubestow.apiserver.store.records import Change

JOBS = "jobs.batch"
INDEX = "batch.kubernetes.io/job-completion-index"


@pytest.fixture
def world() -> World:
    """Pods start within a second and run for ten."""
    return World()


def job(annotations: dict[str, str] | None = None, policy: str = "Never", **spec: Any) -> dict[str, Any]:
    """The spec of a Job."""
    return {"template": template("i", annotations, restartPolicy=policy), **spec}


def ended(world: World, name: str = "j", limit: float = 20_000) -> dict[str, Any]:
    """The status of a Job once it has ended."""

    def end() -> dict[str, Any] | None:
        status = world.status(JOBS, name)
        ends = [one for one in status.get("conditions", ()) if one["type"] in ("Complete", "Failed")]
        return status if ends else None

    found: dict[str, Any] = world.until(end, limit)
    return found


def conditions(status: dict[str, Any]) -> list[tuple[str, str]]:
    """Type and reason of conditions."""
    return [(one["type"], one["reason"]) for one in status["conditions"]]


def test_a_job_runs_to_completion(world: World) -> None:
    """No more at once than parallelism; the end comes in two steps, and nothing tracks the pods any more."""
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
    """Pods that run are left to finish, no new ones are started."""
    world.create(JOBS, "j", job(parallelism=3))
    status = ended(world)
    assert status["succeeded"] == 3
    assert len(world.all("pods")) == 3


def test_a_job_adopts_what_it_selects_and_lets_go_of_the_rest(world: World) -> None:
    """A pod that lost its owner is taken back; one that lost its labels goes untracked, and another takes its place."""
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


def test_a_job_gives_up_after_enough_failures(world: World) -> None:
    """It waits longer after each: 10, 20, 40 seconds."""
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
    """restartPolicy OnFailure: the same pod tries again until the limit."""
    world.create(JOBS, "j", job({"exit-code": "3"}, "OnFailure", backoffLimit=2))
    status = ended(world)
    assert conditions(status)[-1] == ("Failed", "BackoffLimitExceeded")
    assert len({one["metadata"]["name"] for one in world.all("pods")}) <= 1


def test_a_job_that_takes_too_long_fails(world: World) -> None:
    """activeDeadlineSeconds after it started; its pods are stopped."""
    world.create(JOBS, "j", job({"run-seconds": "inf"}, activeDeadlineSeconds=60))
    status = ended(world)
    assert conditions(status)[-1] == ("Failed", "DeadlineExceeded")
    assert (status.get("active", 0), status["failed"]) == (0, 1)
    assert 60 <= world.clock.time - START <= 63


def test_indexes_are_given_out_once(world: World) -> None:
    """Each pod knows its own."""
    world.create(JOBS, "j", job(completions=4, parallelism=3, completionMode="Indexed"))
    status = ended(world)
    assert status["completedIndexes"] == "0-3"
    pods = world.all("pods")
    assert sorted(one["metadata"]["labels"][INDEX] for one in pods) == ["0", "1", "2", "3"]
    first = next(one for one in pods if one["metadata"]["annotations"][INDEX] == "0")
    assert first["metadata"]["name"].startswith("j-0-")
    assert first["spec"]["hostname"] == "j-0"
    assert first["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


def test_a_failed_index_is_tried_again(world: World) -> None:
    """Other indexes are not."""
    world.create(
        JOBS, "j", job({"fail-indexes": "1"}, completions=3, parallelism=3, completionMode="Indexed", backoffLimit=1)
    )
    status = ended(world)
    assert (status["completedIndexes"], status["failed"]) == ("0,2", 2)
    tried = sorted(one["metadata"]["labels"][INDEX] for one in world.all("pods"))
    assert tried == ["0", "1", "1", "2"]


def indexed(annotations: dict[str, str], **spec: Any) -> dict[str, Any]:
    """An indexed Job of five, whose indexes fail by themselves."""
    limits: dict[str, Any] = {
        "completions": 5,
        "parallelism": 5,
        "completionMode": "Indexed",
        "backoffLimitPerIndex": 1,
    }
    return job(annotations, **{**limits, **spec})


def test_indexes_fail_by_themselves(world: World) -> None:
    """With backoffLimitPerIndex the others go on; the Job fails when all are done."""
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
    """A pod failure policy of one rule."""
    return {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [42]}, **more}]}


def test_a_policy_fails_a_job_at_once(world: World) -> None:
    """And names the rule."""
    world.create(JOBS, "j", job({"exit-code": "42"}, podFailurePolicy=rule("FailJob"), parallelism=2, completions=2))
    status = ended(world)
    assert conditions(status)[-1] == ("Failed", "PodFailurePolicy")
    assert "matching FailJob rule at index 0" in status["conditions"][-1]["message"]


def test_a_policy_fails_an_index_at_once(world: World) -> None:
    """However often it might be tried."""
    world.create(
        JOBS,
        "j",
        indexed({"fail-indexes": "2", "exit-code": "42"}, backoffLimitPerIndex=5, podFailurePolicy=rule("FailIndex")),
    )
    status = ended(world)
    assert (status["failedIndexes"], status["failed"]) == ("2", 1)


def test_ignored_failures_do_not_count(world: World) -> None:
    """A pod that is evicted is replaced for nothing."""
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
def test_a_job_succeeds_when_its_policy_says_so(world: World, rules: list[dict[str, Any]], succeeded: int) -> None:
    """Pods that still run are stopped, and do not count as failed."""
    spec = indexed({}, parallelism=2, successPolicy={"rules": rules})
    del spec["backoffLimitPerIndex"]
    world.create(JOBS, "j", spec)
    status = ended(world)
    assert conditions(status) == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]
    assert (status["succeeded"], status.get("failed", 0)) == (succeeded, 0)


def test_a_suspended_job_waits_and_goes_on(world: World) -> None:
    """Its pods go, its clock starts anew, events tell."""
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
    told = {one["reason"]: one["count"] for one in world.all("events")}
    assert (told["Suspended"], told["Resumed"]) == (2, 2)


@pytest.mark.parametrize(("policy", "together"), [("TerminatingOrFailed", True), ("Failed", False)])
def test_a_pod_is_replaced_when_it_goes_or_when_it_is_gone(world: World, policy: str, together: bool) -> None:
    """podReplacementPolicy; a pod that takes long to stop shows the difference."""
    world.create(JOBS, "j", job({"run-seconds": "inf", "stop-seconds": "20"}, podReplacementPolicy=policy))
    world.run(5)
    (pod,) = world.pods()
    world.delete("pods", pod["metadata"]["name"])
    world.run(15)
    assert (len(world.all("pods")) == 2) is together
    assert world.status(JOBS, "j")["terminating"] == 1
    world.run(30)
    assert (len(world.pods()), world.status(JOBS, "j")["failed"]) == (1, 1)


def test_a_finished_job_goes_after_its_time(world: World) -> None:
    """ttlSecondsAfterFinished, with its pods."""
    world.create(JOBS, "j", job(ttlSecondsAfterFinished=100))
    ended(world)
    world.run(99)
    assert world.find(JOBS, "j") is not None
    world.run(5)
    assert (world.find(JOBS, "j"), world.all("pods")) == (None, [])


def test_a_job_of_another_controller_is_left_alone(world: World) -> None:
    """managedBy."""
    world.create(JOBS, "j", job(managedBy="example.com/other"))
    world.run(60)
    assert world.all("pods") == []


def test_shrinking_parallelism_stops_pods(world: World) -> None:
    """Those that are not needed now."""
    world.create(JOBS, "j", job({"run-seconds": "inf"}, completions=6, parallelism=4))
    world.run(5)
    world.set(JOBS, "j", parallelism=1)
    world.run(5)
    assert (len(world.pods()), world.status(JOBS, "j")["active"]) == (1, 1)


@pytest.mark.parametrize("how", ["Background", "Foreground", "Orphan"])
def test_a_deleted_job_does_not_hold_its_pods(world: World, how: str) -> None:
    """The finalizer that counts them goes with it."""
    world.create(JOBS, "j", job({"run-seconds": "inf"}))
    world.run(5)
    world.delete(JOBS, "j", propagation=how)
    world.run(20)
    assert world.find(JOBS, "j") is None
    assert [one["metadata"].get("finalizers") for one in world.all("pods")] == ([None] if how == "Orphan" else [])


def test_a_pod_that_is_deleted_before_it_ran_counts_as_failed() -> None:
    """Nobody else would ever end it."""
    world = World(schedules=False)
    world.create(JOBS, "j", job(podReplacementPolicy="Failed"))
    world.run(5)
    (pod,) = world.pods()
    world.delete("pods", pod["metadata"]["name"])
    world.run(60)
    assert world.status(JOBS, "j")["failed"] == 1
    assert len(world.all("pods")) == 1


def test_counters_never_forget_nor_count_twice(world: World) -> None:
    """Whatever the order in which pods end, each is in one counter at the end."""
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
