"""CronJobs create Jobs on schedule."""

from typing import Any

import pytest

from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.resources import BY_STORAGE
from support.apiserver.world import World, template

CRON_JOBS, JOBS = "cronjobs.batch", "jobs.batch"


def cron_job(schedule: str = "*/5 * * * *", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return the spec of a CronJob."""
    jobs = {
        "metadata": {"labels": {"of": "c"}},
        "spec": {"template": template("i", annotations, restartPolicy="Never")},
    }
    return {"schedule": schedule, "jobTemplate": jobs, **spec}


def names(world: World) -> list[str]:
    """Return the names of Jobs, oldest first."""
    return [one["metadata"]["name"] for one in world.all(JOBS)]


def test_jobs_start_on_time(world: World) -> None:
    """Jobs are named by their minute; status and events record them."""
    world.create(CRON_JOBS, "c", cron_job())
    world.run(301)
    (job,) = world.all(JOBS)
    minute = 1_767_225_600 // 60 + 5
    assert job["metadata"]["name"] == f"c-{minute}"
    assert job["metadata"]["labels"] | {"of": "c"} == job["metadata"]["labels"]
    stamp = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    assert job["metadata"]["annotations"][stamp] == "2026-01-01T00:05:00Z"
    status = world.status(CRON_JOBS, "c")
    assert (status["lastScheduleTime"], status["active"][0]["name"]) == ("2026-01-01T00:05:00Z", f"c-{minute}")
    world.run(60)
    status = world.status(CRON_JOBS, "c")
    assert ("active" in status, status["lastSuccessfulTime"]) == (False, "2026-01-01T00:05:11Z")
    assert world.events("CronJob") == [
        ("SuccessfulCreate", f"Created job c-{minute}"),
        ("SawCompletedJob", f"Saw completed job: c-{minute}, condition: Complete"),
    ]


@pytest.mark.parametrize(("policy", "jobs"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
def test_the_concurrency_policy_decides_about_overlapping_jobs(world: World, policy: str, jobs: int) -> None:
    """Each Job takes longer than the interval."""
    world.create(CRON_JOBS, "c", cron_job(annotations={"run-seconds": "inf"}, concurrencyPolicy=policy))
    world.run(16 * 60)
    found = names(world)
    assert len(found) == jobs == len(world.status(CRON_JOBS, "c")["active"])
    first = f"c-{1_767_225_600 // 60 + 5}"
    assert (first in found) == (policy != "Replace")
    reasons = {reason for reason, _ in world.events("CronJob")}
    assert ("JobAlreadyActive" in reasons) == (policy == "Forbid")
    assert ("SuccessfulDelete" in reasons) == (policy == "Replace")


def test_a_blocked_job_starts_late(world: World) -> None:
    """With Forbid, the last missed time is used once no Job is active."""
    world.create(CRON_JOBS, "c", cron_job(annotations={"run-seconds": "400"}, concurrencyPolicy="Forbid"))
    world.run(5 * 60 + 420)
    assert names(world)[-1] == f"c-{1_767_225_600 // 60 + 10}"


def test_nothing_starts_while_suspended(world: World) -> None:
    """After resuming, only the last missed time is used."""
    world.create(CRON_JOBS, "c", cron_job(suspend=True))
    world.run(3600)
    assert names(world) == []
    world.set(CRON_JOBS, "c", suspend=False)
    world.run(1)
    assert names(world) == [f"c-{1_767_225_600 // 60 + 60}"]


def test_a_time_missed_for_too_long_is_dropped(world: World) -> None:
    """startingDeadlineSeconds."""
    world.create(CRON_JOBS, "c", cron_job("0 * * * *", suspend=True, startingDeadlineSeconds=60))
    world.run(3600 + 120)
    world.set(CRON_JOBS, "c", suspend=False)
    world.run(60)
    assert names(world) == []
    world.run(3600)
    assert len(names(world)) == 1


def test_only_a_few_old_jobs_are_kept(world: World) -> None:
    """The history limits apply to succeeded and to failed Jobs."""
    world.create(CRON_JOBS, "good", cron_job(successfulJobsHistoryLimit=2))
    bad = cron_job(annotations={"exit-code": "1"}, failedJobsHistoryLimit=1)
    bad["jobTemplate"]["spec"]["backoffLimit"] = 0
    world.create(CRON_JOBS, "bad", bad)
    world.run(3600)
    kinds = [name.partition("-")[0] for name in names(world) if world.status(JOBS, name).get("conditions")]
    assert (kinds.count("good"), kinds.count("bad")) == (2, 1)


def test_time_zones_shift_the_hour(world: World) -> None:
    """Two in the morning in Tokyo is five in the afternoon in UTC."""
    world.create(CRON_JOBS, "c", cron_job("0 2 * * *", timeZone="Asia/Tokyo"))
    world.run(17 * 3600 - 1)
    assert names(world) == []
    world.run(2)
    (job,) = world.all(JOBS)
    stamp = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert stamp == "2026-01-02T02:00:00+09:00"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [({"schedule": "61 * * * *"}, "UnparseableSchedule"), ({"timeZone": "Moon/Base"}, "UnknownTimeZone")],
)
def test_an_invalid_spec_is_reported(world: World, spec: dict[str, str], reason: str) -> None:
    """There is one event, and a corrected spec works."""
    body = {"metadata": {"name": "c"}, "spec": {**cron_job(), **spec}}
    # Written directly to the store: admission can reject it, an older server may have accepted it.
    record = world.writer.create(
        BY_STORAGE[CRON_JOBS], "default", {"metadata": {"name": "c"}, "spec": cron_job()}, Intent()
    )
    world.store.put(CRON_JOBS, {**record.object(), "spec": body["spec"]})
    world.run(3600)
    assert [seen for seen, _ in world.events("CronJob")] == [reason]
    world.update(CRON_JOBS, "c", lambda one: one.update(spec=cron_job()))
    world.run(60)
    assert len(names(world)) == 1


def test_a_deleted_job_is_no_longer_active(world: World) -> None:
    """It is removed from the list of active Jobs."""
    world.create(CRON_JOBS, "c", cron_job(annotations={"run-seconds": "inf"}, concurrencyPolicy="Forbid"))
    world.run(330)
    world.delete(JOBS, names(world)[0])
    world.run(30)
    assert "MissingJob" in [reason for reason, _ in world.events("CronJob")]
    assert "active" not in world.status(CRON_JOBS, "c")
