"""What is told to metrics comes out under the right names and labels."""

import io
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from kubestow.client.observers import CredentialsObserver, ElectionObserver, RequestObserver
from kubestow.cluster.state import Cluster as RealCluster
from kubestow.config.features import Features
from kubestow.framework.caller import CallObserver
from kubestow.model.meta import ObjectMeta
from kubestow.model.pod import Pod
from kubestow.queue.observer import QueueObserver
from kubestow.reporting.build import BuildInfo
from kubestow.reporting.log_setup import LogOptions, LogOutput
from kubestow.reporting.metrics.catalogue import Metrics
from kubestow.reporting.metrics.exposition import render
from kubestow.reporting.metrics.instruments import ALPHA, Counter, Histogram
from kubestow.reporting.metrics.options import MetricOptions
from kubestow.reporting.metrics.process import add_process_metrics
from kubestow.reporting.metrics.registry import Registry
from reporting.doubles import Cluster, Hook, Nodes, Profile, Queue


def values(registry: Registry, prefix: str) -> dict[str, float]:
    """Samples whose names begin so, as `name label=value`; of histograms, sum and count."""
    return {
        " ".join((sample.name.removeprefix(prefix), *(f"{label}={value}" for label, value in sample.labels.items()))): (
            sample.value
        )
        for family in text_string_to_metric_families(render(registry.families())[0].decode())
        for sample in family.samples
        if sample.name.startswith(prefix) and not sample.name.endswith("_bucket")
    }


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def test_attempts(metrics: Metrics) -> None:
    """An attempt is counted and timed by profile and result."""
    metrics.scheduler.attempt_finished("default-scheduler", "scheduled", 0.25)
    metrics.scheduler.attempt_finished("default-scheduler", "scheduled", 0.5)
    metrics.scheduler.attempt_finished("default-scheduler", "error", 1)
    labels = "profile=default-scheduler result="
    assert values(metrics.registry, "scheduler_schedul") == {
        f"e_attempts_total {labels}scheduled": 2,
        f"e_attempts_total {labels}error": 1,
        f"ing_attempt_duration_seconds_sum {labels}scheduled": 0.75,
        f"ing_attempt_duration_seconds_count {labels}scheduled": 2,
        f"ing_attempt_duration_seconds_sum {labels}error": 1,
        f"ing_attempt_duration_seconds_count {labels}error": 1,
        "ing_algorithm_duration_seconds_sum": 0,
        "ing_algorithm_duration_seconds_count": 0,
    }


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (400, "15+")])
def test_a_scheduled_pod(metrics: Metrics, attempts: int, label: str) -> None:
    """Its attempts are counted, its time told by them up to a limit, and whether it had waited too long."""
    metrics.scheduler.pod_scheduled(attempts, 2.5, was_flushed=True)
    assert values(metrics.registry, "scheduler_pod_") == {
        "scheduling_attempts_sum": attempts,
        "scheduling_attempts_count": 1,
        f"scheduling_sli_duration_seconds_sum attempts={label}": 2.5,
        f"scheduling_sli_duration_seconds_count attempts={label}": 1,
        "scheduled_after_flush_total": 1,
    }


def test_a_scheduled_pod_without_a_first_attempt(metrics: Metrics) -> None:
    """Without a time of its first attempt, only the attempts are counted."""
    metrics.scheduler.pod_scheduled(1, None, was_flushed=False)
    assert values(metrics.registry, "scheduler_pod_") == {
        "scheduling_attempts_sum": 1,
        "scheduling_attempts_count": 1,
        "scheduled_after_flush_total": 0,
    }


def test_gauges_follow_what_they_watch(metrics: Metrics) -> None:
    """Lengths and sizes are read anew each time."""
    queue = Queue({"active": 1, "gated": 0}, {("NodePorts", "p"): 2}, {"NodeAdd": 3})
    cluster = Cluster(Nodes({"n1": 0, "n2": 1}), 5, 1)
    metrics.queue.watch_queue(queue)
    metrics.scheduler.watch_cluster(cluster)
    expected = {
        "cache_size type=assumed_pods": 1,
        "cache_size type=nodes": 2,
        "cache_size type=pods": 5,
        "pending_pods queue=active": 1,
        "pending_pods queue=gated": 0,
        "inflight_events event=NodeAdd": 3,
        "unschedulable_pods plugin=NodePorts profile=p": 2,
    }
    assert expected.items() <= values(metrics.registry, "scheduler_").items()
    queue.waiting = {"active": 7}
    cluster.pod_count = 6
    after = values(metrics.registry, "scheduler_")
    assert (after["pending_pods queue=active"], after["cache_size type=pods"]) == (7, 6)


def test_evaluations_are_read_from_the_plugins(metrics: Metrics) -> None:
    """They are told for the four points that count them, plugins that were never asked left out."""
    fit = Hook("NodeResourcesFit", 5000)
    points = {"PreFilter": (fit,), "Filter": (fit, Hook("NodeName")), "Reserve": (fit,)}
    metrics.framework.watch_profile(Profile("p", points))
    metrics.framework.watch_profile(Profile("q", {"Score": (Hook("ImageLocality", 3),)}))
    labels = "extension_point={} plugin={} profile={}"
    assert values(metrics.registry, "scheduler_plugin_evaluation_total") == {
        " " + labels.format("PreFilter", "NodeResourcesFit", "p"): 5000,
        " " + labels.format("Filter", "NodeResourcesFit", "p"): 5000,
        " " + labels.format("Score", "ImageLocality", "q"): 3,
    }


def test_parts_have_the_shapes_of_observers(metrics: Metrics) -> None:
    """The framework, the queue, the client and the real cluster work with the parts made for them."""
    call: CallObserver = metrics.framework
    queue: QueueObserver = metrics.queue
    request: RequestObserver = metrics.requests
    credentials: CredentialsObserver = metrics.credentials
    election: ElectionObserver = metrics.election
    call.point_ran("p", "Filter", "Success", 0.1)
    queue.pod_entered("active", "PodAdd")
    request.request_done("GET", "h", "200", 0.1, 0, 10)
    credentials.plugin_called(True, None)
    election.leading("kube-scheduler", False)
    election.new_leader("kube-scheduler", "somebody")
    metrics.scheduler.watch_cluster(RealCluster())
    assert values(metrics.registry, "scheduler_queue_incoming") == {"_pods_total event=PodAdd queue=active": 1}
    assert values(metrics.registry, "leader_election") == {"_master_status name=kube-scheduler": 0}
    assert values(metrics.registry, "rest_client_requests") == {"_total code=200 host=h method=GET": 1}
    assert values(metrics.registry, "scheduler_cache_size")[" type=nodes"] == 0


def test_a_failing_hint_is_logged(metrics: Metrics) -> None:
    """The log tells the plugin, the event and the pod."""
    stream = io.StringIO()
    output = LogOutput(LogOptions(), err=stream)
    output.open()
    try:
        pod = Pod(ObjectMeta(name="web", namespace="default"))
        metrics.queue.hint_failed("NodePorts", "NodeAdd", pod, KeyError("x"))
    finally:
        output.close()
    assert 'plugin="NodePorts" event="NodeAdd" pod="default/web"' in stream.getvalue()


def test_credentials_of_plugins() -> None:
    """Time left and age at replacement follow the clock; failures are counted apart."""
    now = 100.0
    metrics = Metrics(monotonic=lambda: now)
    name = "rest_client_exec_plugin_"
    assert values(metrics.registry, f"{name}ttl") == {"_seconds": math.inf}
    metrics.credentials.plugin_called(True, 60)
    now = 130.0
    assert values(metrics.registry, f"{name}ttl") == {"_seconds": 30}
    metrics.credentials.plugin_called(False, None)
    metrics.credentials.plugin_called(True, None)
    assert values(metrics.registry, name) == {
        "call_total call_status=no_error code=0": 2,
        "call_total call_status=plugin_execution_error code=1": 1,
        "certificate_rotation_age_sum": 30,
        "certificate_rotation_age_count": 1,
        "ttl_seconds": math.inf,
    }


def test_workqueues(metrics: Metrics) -> None:
    """Work in progress is told as sum and longest; an idle queue has neither."""
    metrics.workqueues.watch_workqueue("busy", lambda: 4, lambda: [1.5, 2])
    metrics.workqueues.watch_workqueue("idle", lambda: 0, list)
    assert values(metrics.registry, "workqueue_") == {
        "depth name=busy": 4,
        "depth name=idle": 0,
        "unfinished_work_seconds name=busy": 3.5,
        "unfinished_work_seconds name=idle": 0,
        "longest_running_processor_seconds name=busy": 2,
        "longest_running_processor_seconds name=idle": 0,
    }


def test_health_checks_have_a_page_of_their_own(metrics: Metrics) -> None:
    """The last result and how often there was which are told by check and endpoint, not on the common page."""
    for passed in (True, True, False):
        metrics.health.checked("ping", "healthz", passed)
    page = metrics.health.render()[0].decode()
    assert [line for line in page.splitlines() if not line.startswith("#")] == [
        'kubernetes_healthcheck{name="ping",type="healthz"} 0',
        'kubernetes_healthchecks_total{name="ping",status="error",type="healthz"} 1',
        'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 2',
    ]
    assert "kubernetes_healthcheck" not in metrics.render()[0].decode()


def test_features_and_version() -> None:
    """Every gate is told with its stage, and the version under Kubernetes' labels."""
    metrics = Metrics(Features.parse("GangScheduling=true,GenericWorkload=true"), build=BuildInfo(git_commit="abc"))
    gates = values(metrics.registry, "kubernetes_feature_enabled")
    assert gates[" name=GangScheduling stage=ALPHA"] == 1
    assert gates[" name=SchedulerAsyncAPICalls stage=BETA"] == 0
    assert gates[" name=SchedulerQueueingHints stage="] == 1
    (build,) = values(metrics.registry, "kubernetes_build_info")
    assert "git_commit=abc" in build
    assert " git_version=v1.36.4+kubestow." in build
    assert " major=1 minor=36 " in build


def test_the_process(tmp_path: Path) -> None:
    """Numbers of the process come from /proc; limits may be absent."""
    own = tmp_path / "self"
    (own / "fd").mkdir(parents=True)
    (own / "fd" / "0").touch()
    (own / "net").mkdir()
    (own / "net" / "netstat").write_text("TcpExt: A\nTcpExt: 1\nIpExt: InOctets OutOctets\nIpExt: 70 80\n")
    (own / "stat").write_text("1 (a) b) S " + " ".join(str(number) for number in range(1, 40)))
    (own / "limits").write_text(
        "Max open files            1024   4096  files\nMax address space  unlimited unlimited bytes\n"
    )
    (tmp_path / "stat").write_text("cpu 1\nbtime 1000\n")
    registry = Registry(MetricOptions())
    add_process_metrics(registry, tmp_path)
    told = values(registry, "process_")
    assert told["open_fds"] == 1
    assert told["max_fds"] == 1024
    assert told["virtual_memory_max_bytes"] == float(2**64 - 1)
    assert told["virtual_memory_bytes"] == 20
    assert told["network_receive_bytes_total"] == 70
    assert told["network_transmit_bytes_total"] == 80
    assert told["start_time_seconds"] > 1000
    assert told["cpu_seconds_total"] > 0


def test_without_proc_nothing_is_told_of_the_process(tmp_path: Path) -> None:
    """Where there is no /proc, those metrics are left out."""
    registry = Registry(MetricOptions())
    add_process_metrics(registry, tmp_path)
    assert values(registry, "process_") == {}


@given(st.lists(st.floats(0, 100)), st.lists(st.floats(0, 100), min_size=1, unique=True).map(sorted))
def test_histograms_count_every_value_once(seen: list[float], bounds: list[float]) -> None:
    """A value counts in the first bucket whose bound it does not exceed."""
    histogram = Histogram("h", ALPHA, "", bounds)
    for value in seen:
        histogram.observe(value)
    counts, total = histogram.read()[()]
    cumulated = [sum(counts[: index + 1]) for index in range(len(counts))]
    assert cumulated == [sum(value <= hook for value in seen) for hook in (*bounds, math.inf)]
    assert total == pytest.approx(sum(seen))


def test_bad_declarations_are_refused() -> None:
    """Labels out of order and names used twice are errors that name the metric."""
    with pytest.raises(ValueError, match="labels of x must be in alphabetical order, not b a"):
        Counter("x", ALPHA, "", "b a")
    registry = Registry(MetricOptions())
    registry.add(Counter("x", ALPHA, ""))
    with pytest.raises(ValueError, match="two metrics named x"):
        registry.add(Counter("x", ALPHA, ""))
