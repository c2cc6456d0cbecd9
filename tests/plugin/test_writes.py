"""Plugins write to the objects of their kinds: in the background or in PreBind, and never while they evaluate a pod."""

import logging
from typing import Any

import pytest

from kubestow.config import Features
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.explanation import explained
from kubestow.insight.explain.world import Setup, World
from kubestow.plugin import Handle, PodInfo, PriorityClass, watch
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.simulator.in_memory.harness import configured
from kubestow.testing import SchedulerHarness, make_node, make_object, make_pod
from support.plugins.platform_plugins import ElasticQuota, LateReporter, QuotaReporter

QUOTA = "default/quota"


def busy(*, pods: int = 2, plugins: Any = (QuotaReporter,), **options: Any) -> SchedulerHarness:
    """Return a harness with a quota, in whose namespace pods are waiting."""
    harness = SchedulerHarness(plugins=plugins, **options)
    harness.cluster.add(make_node("n1", cpu=8))
    harness.cluster.add(make_object(ElasticQuota, "quota", annotations={"first": "x"}))
    for number in range(pods):
        harness.cluster.add(make_pod(f"p{number}", cpu=1))
    return harness


def used(harness: SchedulerHarness) -> Any:
    quota = harness.cluster.get(ElasticQuota, QUOTA)
    return None if quota is None else quota.status.used


def calls(harness: SchedulerHarness) -> int:
    return sum(call.call == "patch_object" for call in harness.cluster.calls)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def test_status_and_annotations_are_written() -> None:
    """Fields are merged into those of the object; None removes one."""
    with busy() as harness:
        harness.run_until_idle()
        quota = harness.cluster.get(ElasticQuota, QUOTA)
        assert quota is not None
        assert quota.status.used["cpu"] == "2"
        assert {"last", "bound-to-n1"} <= quota.metadata.annotations.keys()
        assert "first" not in quota.metadata.annotations


def test_patches_that_wait_are_sent_as_one() -> None:
    """A later patch replaces the values of one that is still queued, so that at most one waits for each object."""
    with busy(pods=6, latency=5.0) as harness:
        harness.cluster.slow["bind"] = 0.01
        harness.run_until_idle()
        assert used(harness)["cpu"] == "6"
        status_and_annotations = calls(harness) - 6
        assert status_and_annotations < 12


def test_writes_are_retried_while_the_server_is_unavailable(caplog: pytest.LogCaptureFixture) -> None:
    """A patch waits until the server is back, and contains what was added meanwhile."""
    with busy() as harness:
        harness.cluster.faults.fail("patch_object", "ServiceUnavailable", times=5)
        harness.run_until_idle()
        harness.run_for(60)
        harness.run_until_idle()
        assert used(harness)["cpu"] == "2"
        assert errors(caplog) == []


def test_a_conflict_is_retried_while_the_object_exists() -> None:
    """The server may reject a patch that races with another client."""
    with busy() as harness:
        harness.cluster.faults.fail("patch_object", "Conflict", skip=2, times=2)
        harness.run_until_idle()
        assert used(harness)["cpu"] == "2"


def test_a_patch_of_an_object_that_is_gone_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """Neither is another object of the same name changed."""
    with busy(plugins=[LateReporter], latency=2.0) as harness:
        harness.run_until(lambda: calls(harness) > 0)
        harness.cluster.delete(harness.cluster.get(ElasticQuota, QUOTA))
        harness.cluster.add(make_object(ElasticQuota, "quota"))
        harness.cluster.faults.fail("bind", "Conflict", times=None)
        harness.run_for(300)
        assert used(harness) == {}
        assert errors(caplog) == []


def test_a_forbidden_write_is_logged_once_with_the_missing_rule(caplog: pytest.LogCaptureFixture) -> None:
    """Pods are bound nevertheless; the log says which permission to add."""
    with busy(plugins=[LateReporter], pods=5) as harness:
        harness.cluster.faults.fail("patch_object", "Forbidden", times=None)
        harness.run_until_idle()
        assert len(harness.bindings) == 5
        logged = [line for line in errors(caplog) if "elasticquotas" in line]
        assert len(logged) == 2
        rule = "{apiGroups: ['scheduling.x-k8s.io'], resources: ['elasticquotas/status'], verbs: ['patch']}"
        assert any(f'missing_rule="{rule}"' in line for line in logged), logged


def test_a_rejected_patch_in_pre_bind_fails_the_attempt() -> None:
    """The pod goes back to the queue, and is tried again."""
    with busy(pods=1) as harness:
        harness.cluster.faults.fail("patch_object", "Conflict")
        harness.run_until_idle()
        assert harness.bindings == {"default/p0": "n1"}
        assert calls(harness) >= 2


class Writes:
    """Writes where the test wants it to."""

    name = "Writes"
    watches = (watch(ElasticQuota, writes=("status",)), PriorityClass)
    method = ""
    error: Exception | None = None

    def __init__(self, args: Any, handle: Handle) -> None:
        self._quotas = handle.objects(ElasticQuota)
        type(self).error = None

    def _write(self, method: str) -> None:
        if method == self.method:
            try:
                self._quotas.enqueue_patch(next(iter(self._quotas)), status={"used": {"cpu": 1}})
            except Exception as error:
                type(self).error = error

    def pre_filter(self, pod: PodInfo) -> None:
        self._write("pre_filter")

    def filter(self, state: None, pod: PodInfo, node: Any) -> None:
        self._write("filter")

    def score(self, state: None, pod: PodInfo, node: Any) -> int:
        self._write("score")
        return 0

    def reserve(self, state: None, pod: PodInfo, node: str) -> None:
        self._write("reserve")

    def unreserve(self, state: None, pod: PodInfo, node: str) -> None:
        pass


@pytest.mark.parametrize("method", ["pre_filter", "filter", "score"])
def test_evaluating_a_pod_must_not_write(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """These methods also run in dry runs, and ahead of time."""
    monkeypatch.setattr(Writes, "method", method)
    with busy(pods=1, plugins=[Writes]) as harness:
        harness.cluster.add(make_node("n2", cpu=8))
        harness.run_until_idle()
        assert isinstance(Writes.error, RuntimeError)
        assert calls(harness) == 0


def test_reserve_may_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs only for a pod that is about to be bound."""
    monkeypatch.setattr(Writes, "method", "reserve")
    with busy(pods=1, plugins=[Writes]) as harness:
        harness.run_until_idle()
        assert Writes.error is None
        assert used(harness) == {"cpu": 1}


def test_a_part_that_is_not_declared_cannot_be_written() -> None:
    """The message says what to add."""

    class Annotates(Writes):
        def __init__(self, args: Any, handle: Handle) -> None:
            quotas = handle.objects(ElasticQuota)
            quota = make_object(ElasticQuota, "quota")
            with pytest.raises(LookupError, match=r"annotations of ElasticQuota .* watch\(ElasticQuota, writes="):
                quotas.enqueue_patch(quota, annotations={"a": "b"})
            with pytest.raises(LookupError, match="status of PriorityClass"):
                handle.objects(PriorityClass).enqueue_patch(make_object(PriorityClass, "p"), status={})

    with SchedulerHarness(plugins=[Annotates]):
        pass


def test_objects_of_a_removed_definition_are_not_written(caplog: pytest.LogCaptureFixture) -> None:
    """Their patches are dropped without an error."""
    with busy(plugins=[LateReporter], latency=2.0) as harness:
        harness.run_until(lambda: calls(harness) > 0)
        harness.remove_crd(ElasticQuota)
        harness.run_until_idle()
        assert len(harness.bindings) == 2
        assert errors(caplog) == []


def test_an_object_that_stays_unwritable_is_given_up_with_one_message(caplog: pytest.LogCaptureFixture) -> None:
    """For example, a definition without a status subresource answers 404 for each object."""
    with busy(plugins=[LateReporter]) as harness:
        for number in range(20):
            harness.cluster.add(make_object(ElasticQuota, f"other-{number}"))
        harness.cluster.faults.fail("patch_object", "NotFound", times=None)
        harness.run_until_idle()
        assert len([line for line in errors(caplog) if "elasticquotas/status" in line]) == 1


def test_explain_reports_what_would_be_written() -> None:
    """Nothing is written in a dry run."""

    class Reacts(QuotaReporter):
        def __init__(self, args: None, handle: Handle) -> None:
            super().__init__(args, handle)
            self._quotas.on_change(self._report)

        def _report(self, key: str, quota: ElasticQuota | None) -> None:
            if quota is not None:
                self._quotas.enqueue_patch(quota, status={"used": {"cpu": "7"}})

    registry = in_tree_registry()
    registry.register(Reacts.name, Reacts)
    configuration = configured(None, [Reacts], Features())
    quotas = [make_object(ElasticQuota, f"q{number}") for number in range(7)]
    world = World(Setup(configuration, Features(), registry), [make_node("n1"), *quotas], 0.0)
    notes = explained(DryRun(world, PodInfo(make_pod("p")))).notes
    wanted = 'a plugin would write to elasticquotas.scheduling.x-k8s.io default/q0: {"status":{"used":{"cpu":"7"}}}.'
    assert notes[0] == wanted
    assert notes[-1] == "plugins would write 2 more times."


def test_ten_thousand_objects_are_read_and_written() -> None:
    """The pods do not wait for the writes."""
    with busy(pods=1, plugins=[LateReporter], latency=1.0) as harness:
        for number in range(10_000):
            harness.cluster.add(make_object(ElasticQuota, f"q{number}"))
        harness.run_until(lambda: harness.cluster.node_of("p0") != "")
        assert harness.time < 3.0
        harness.run_until_idle()
        assert all(quota.status.used == {"cpu": "1"} for quota in harness.cluster.all(ElasticQuota))
